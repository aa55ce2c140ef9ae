"""A working folder that is full or read-only: one sentence, exit code 2, no part of a file."""

import os
import re
from pathlib import Path

import pytest

from tests.command_line import started
from tests.project.core_commands import ROOT, STEPS, STUDY
from tests.project.test_homes import isolates

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not isolates(), reason="no namespaces of users here"),
]

JOB = "name: job\ncommand: [python3, -c, '{code}']\nlauncher: single\n"
FULL = "cat /dev/zero >filler 2>/dev/null || true"
KINDS = {
    "full": (FULL, "No space left on device\n  free some space, or name another folder\n"),
    "read-only": ("mount -o remount,ro work .", "Read-only file system\n  name another folder\n"),
}
# In a tmpfs of 1 MiB: the commands, and the files at the end.
RUN = """
mkdir work
mount -t tmpfs -o size=1m work work
cp *.* work
cd work
eval "$1"
shift
find . | sort >../before
"$@"
find . | sort >../after
"""
COMMANDS = (
    "render job.yaml --site local -o new.sh",
    "render grid.yaml --site local -o scripts",
    "submit job.yaml --site local --wait",
    "collect steps.log -o steps.csv",
    "lint --fix crlf.sh",
    "site init mine",
)
ANSWERS = ROOT / "tests/machine/fixtures"
SCONTROL = "".join(
    f'case "$*" in *{word}*) exec cat {ANSWERS}/lab.{word}*.txt;; esac\n'
    for word in ("config", "partition", "node")
)


def run_in(folder: Path, before: str, *commands: str) -> dict[str, tuple[int, str]]:
    """Run commands in a small file system; return the exit code and the output of each."""
    words = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-euc", RUN, "sh", before)
    env = {**os.environ, "HOME": str(folder)}
    found = started(*commands, folder=folder, prefix=words, environment=env)
    return {name: (one.returncode, one.stdout + one.stderr) for name, one in found.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_one_sentence_and_nothing_half_written(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/scontrol").write_text(f"#!/bin/sh\n{SCONTROL}exit 1\n")
    (tmp_path / "bin/scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (tmp_path / "job.yaml").write_text(JOB.format(code="print(1)"))
    (tmp_path / "grid.yaml").write_text(STUDY)
    (tmp_path / "steps.log").write_text(STEPS)
    (tmp_path / "crlf.sh").write_bytes(b"#!/bin/bash\r\n#SBATCH --nodes=1\r\n")
    before, reason = KINDS[kind]
    found = run_in(tmp_path, before, *COMMANDS)
    assert found.keys() == set(COMMANDS)
    for words, (code, output) in found.items():
        assert (words, code) == (words, 2), output
        assert re.fullmatch(rf"hpctrain: \S+: cannot be written: {reason}", output), output
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()


def test_of_a_study_that_fills_the_disk_each_run_is_lost_for_this_reason(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB.format(code='print("x" * 2_000_000)'))
    text = "name: grid\njob: job.yaml\nscaling: weak\nrepetitions: 2\naxes: {env.X: [1, 2]}\n"
    (tmp_path / "grid.yaml").write_text(text)
    found = run_in(tmp_path, "true", "submit grid.yaml --site local --wait", "status grid")
    for _, output in found.values():
        lines = [line for line in output.splitlines() if " LOST  " in line or line[:4] == "LOST"]
        assert len(lines) > 2, output
        for line in lines:
            assert "disk was full" in line or "No space left on device" in line, output
            assert "hpctrain retry" in line


def test_a_job_that_fills_the_disk_is_lost_for_this_reason(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB.format(code='print("x" * 2_000_000)'))
    found = run_in(tmp_path, "true", "submit job.yaml --site local --wait", "status job")
    for code, output in found.values():
        assert code in (0, 1)
        assert "the disk was full or the quota exceeded; free some space" in output
        assert "Traceback" not in output
