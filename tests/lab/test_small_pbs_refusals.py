"""What a real qsub refuses is refused by the small PBS, as the page and lint say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hpc_train.lab.pbs.qsub_request import read_request
from hpc_train.lab.pbs.resource_list import RefusedError
from tests.lint.conftest import Case, cases
from tests.small_pbs import RunningPbs, pbs

__all__ = ["pbs"]
PAGE = Path(__file__).parents[2] / "docs" / "pbs.md"
# A row of the page: the request, what qsub says, its exit code.
_ROW = re.compile(r"^\| `qsub (.+)` \| `(.+)` \| (\d+) \|$", re.M)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-q", "x"], 170, "Unknown queue"),
        (["-l", "foo=1"], 187, "Unknown resource: foo"),
        (["-l", "select=1:foo=1"], 187, "Unknown resource: foo"),
        (["-l", "walltime=soon"], 166, "Illegal attribute or resource value"),
        (["-l", "place=apart"], 166, "Illegal attribute or resource value"),
        (["-l", "select=1:ncpus=1,ncpus=2"], 2, 'cannot be used with "select"'),
        (["-N", "a b"], 2, "illegal -N value"),
        (["-N", "x" * 240], 2, "illegal -N value"),
        (["-J", "1-1"], 2, "illegal -J value"),
        (["-J", "2,4"], 2, "illegal -J value"),
        (["--version"], 2, "invalid option"),
    ],
)
def test_what_a_real_qsub_refuses_is_refused(
    pbs: RunningPbs, options: list[str], code: int, words: str
) -> None:
    done = pbs.command("qsub", *options, pbs.script("true"))
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


def test_scripts_that_a_real_qsub_refuses(pbs: RunningPbs) -> None:
    assert pbs.command("qsub", pbs.script("true"), "argument").returncode == 2
    assert "contains cr, lf" in pbs.command("qsub", pbs.script("true\r")).stderr
    done = pbs.command("qsub", pbs.script("#PBS -q nowhere\ntrue"))
    assert (done.returncode, done.stderr) == (170, "qsub: Unknown queue\n")


def test_what_the_page_says_is_refused_is_refused_in_these_words(pbs: RunningPbs) -> None:
    rows = _ROW.findall(PAGE.read_text())
    assert len(rows) > 12
    pbs.script("true")
    for request, words, code in rows:
        done = pbs.command("qsub", *shlex.split(request))
        assert (done.returncode, done.stdout) == (int(code), ""), request
        assert done.stderr.startswith(f"qsub: {words}"), request


def refused(case: Case, folder: Path) -> bool:
    (folder / "job.sh").write_text(case.text)
    try:
        read_request(["job.sh"], str(folder), {}, "workq")
    except RefusedError:
        return True
    return False


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in cases()
        if case.rule in ("HT902", "HT903", "HT904", "HT905", "HT906", "HT907")
        and case.wrong
        and "walltime=24:00\n" not in case.text
    ],
    ids=lambda case: case.text.partition("\n")[2].strip(),
)
def test_what_lint_says_is_refused_is_refused(case: Case, tmp_path: Path) -> None:
    assert refused(case, tmp_path)


def test_lines_are_read_as_qsub_does(tmp_path: Path) -> None:
    text = """\
#!/bin/bash
#PBS -N a \\
     -l select=2:ncpus=3 \\
#PBS -l walltime=1:00
#PBS\t-k eod # and a comment
  # an indented one
#PBS -j oe
true
#PBS -q other
"""
    (tmp_path / "job.sh").write_text(text)
    found = read_request(["job.sh"], str(tmp_path), {}, "workq")
    assert (found.name, len(found.chunks), found.chunks[0].ncpus) == ("a", 2, 3)
    assert (found.walltime_s, found.live, found.joined) == (None, True, True)


def test_an_open_quote_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text('#PBS -N "a\ntrue\n')
    with pytest.raises(RefusedError, match='directive error: -N "a'):
        read_request(["job.sh"], str(tmp_path), {}, "workq")
