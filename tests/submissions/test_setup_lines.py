"""Setup lines that bash could not read are refused with their place; nothing is written."""

from pathlib import Path

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.scripts.prepare import Request, prepare

JOB = """\
name: x
command: [python, train.py]
resources: {nodes: 2, gpus_per_node: 4, cpus_per_task: 8, time: 1h}
"""
SITE = """\
schema: 1
name: mine
description: a cluster for tests
scheduler: slurm
launchers: {default: torchrun, allowed: [torchrun]}
partitions: [{name: '*'}, {name: gpu, default: true, gpus_per_node: 4}]
gpu_request: gpus-per-node
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def render(job: str = "", site: str = "") -> tuple[str, ...]:
    """Return the warnings of the plan."""
    Path("mine.yaml").write_text(SITE + site, encoding="utf-8")
    Path("job.yaml").write_text(JOB + job, encoding="utf-8")
    prepared = prepare(Request(path=Path("job.yaml"), site="./mine.yaml"))
    return prepared.points[0].plan.warnings


@pytest.mark.parametrize(
    ("line", "opening"),
    [
        ('export A="b', '"'), ("export A='b", "'"), ("x=$(ls", "$("), ("x=`ls", "`"),
        ("cat <<END", "<<END"), ("x=${A", "${"),
    ],
)  # fmt: skip
def test_an_open_quote_is_refused(line: str, opening: str) -> None:
    setup = f"setup:\n  - module list\n  - |-\n    {line}\n"
    for place, texts in (("job.yaml:6", (setup, "")), ("mine.yaml:10", ("", setup))):
        with pytest.raises(PlanError) as caught:
            render(*texts)
        assert caught.value.message.startswith(f"{place}: setup: the {opening} is never closed")
        assert caught.value.hint


def test_a_command_may_span_lines_of_one_file() -> None:
    lines = ['if test -n "$A"; then', "  x='a", "  b'", "fi", "cat <<END", "it's", "END"]
    setup = "setup:\n" + "".join(f"  - |-\n    {line}\n" for line in lines)
    render(setup, setup)


def test_gpus_are_not_requested_by_two_options() -> None:
    with pytest.raises(PlanError, match=r"job\.yaml:4: directives\.gres.*from 26\.05 on"):
        render("directives: {gres: 'gpu:4'}\n")
    render("directives: {gres: 'nvme:1'}\n")
