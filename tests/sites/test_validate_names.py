"""Words that would do nothing in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import SiteProfileError
from hpc_train.sites.load import load_site

SITE = """\
schema: 1
name: mine
description: d
scheduler: slurm
"""
LAUNCHERS = "launchers: {default: srun, allowed: [srun]}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forbidden: {tyme: why}", "sbatch has no option 'tyme'; did you mean 'time'"),
        ("forbidden: {--memm: no}", "sbatch has no option '--memm'; did you mean 'mem'"),
        ("storage: {x: {request: {foo: bar}}}", r"storage\.x\.request\.foo: sbatch has no option"),
        ("directives: {foo: bar}", "sbatch has no option 'foo'"),
        (
            "partitions: [{name: a, select: {qos: nope}}]\nqos: [{name: note}]",
            "unknown qos 'nope'; did you mean 'note'",
        ),
        ("account: {pattern: '(a+)+$'}", "may take exponential time"),
        ("account: {pattern: 'x(a|b)*'}", "may take exponential time"),
        ("account: {pattern: '(aa?)+'}", "may take exponential time"),
        ("account: {pattern: 'p.*[a-z]*.*x'}", r"match the same characters: \., \[a-z\], \."),
        ("required: [account]\nforbidden: {account: no}", "account is required, but forbidden"),
        ("locked: [accout]", "'accout' is not a key of a profile"),
    ],
)
def test_a_word_that_nobody_knows(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{SITE}{LAUNCHERS}{text}\n")
    with pytest.raises(SiteProfileError, match=message):
        load_site(str(path))


@pytest.mark.parametrize("key", ["forbidden", "warned"])
def test_a_launcher_that_nobody_knows(tmp_path: Path, key: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{SITE}{LAUNCHERS.replace('}', f', {key}: {{mpirunn: x}}}}')}")
    with pytest.raises(SiteProfileError, match="unknown launcher 'mpirunn'; did you mean 'mpirun'"):
        load_site(str(path))


def test_words_of_other_tools_may_be_forbidden(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = LAUNCHERS.replace("}", ", forbidden: {mpiexec: no}, warned: {torchrun: slow}}")
    path.write_text(
        f"{SITE}{text}qos: [{{name: a}}, {{name: '*'}}]\n"
        "partitions: [{name: p, select: {qos: b}}]\n"
        "account: {pattern: 'proj[0-9]{4}(_g)?'}\nlocked: [account, partitions.p.max_time, env.X]\n"
    )
    assert "mpiexec" in load_site(str(path)).value.launchers.forbidden
