"""Everything that stands in a script says where it comes from and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpc_train.pipeline.explain import Explained, explain
from hpc_train.pipeline.prepared import Prepared
from hpc_train.pipeline.render import Request, prepare
from hpc_train.registry import find_batch_system, names
from hpc_train.specs.override import parse_setting

SIZES = ("nodes=2", "tasks_per_node=4", "gpus_per_node=4", "cpus_per_task=8", "time=1h", "mem=64G")


SITE = """\
schema: 1
name: big
description: d
scheduler: slurm
launchers:
  default: srun
  allowed: [ALLOWED]
  srun_args: [--wait=30]
"""


def prepared(launcher: str, *more: str) -> Prepared:
    Path("big.yaml").write_text(SITE.replace("ALLOWED", ", ".join(names("launchers"))))
    path = Path("job.yaml")
    path.write_text("command: [python, t.py]\nenv: {A: b}\nsecrets: {HF_TOKEN: env}\n")
    overrides = tuple(map(parse_setting, (*SIZES, f"launcher={launcher}", *more)))
    return prepare(Request(path=path, site="big", overrides=overrides))


def rows(made: Prepared) -> tuple[Explained, ...]:
    return explain(made.points[0].plan, made.first.site)


@pytest.mark.parametrize("launcher", [name for name in names("launchers") if name != "single"])
def test_each_line_of_the_script_is_explained(desk: Path, launcher: str) -> None:
    made = prepared(launcher)
    found = rows(made)
    text = made.points[0].script.text
    directives = re.findall(r"^#SBATCH (--[a-z-]+)", text, re.MULTILINE)
    assert [row.name for row in found if row.kind == "directive"] == directives
    exports = set(re.findall(r"^export ([A-Z_]+)=", text, re.MULTILINE))
    ours = {"SLURM_EXPORT_ENV", "HPCTRAIN_RUN", "HPCTRAIN_LOG_DIR", "HPCTRAIN_FAILURE_FILE"}
    # Of the process that reads the topology of a node.
    ours.add("LC_ALL")
    variables = {row.name for row in found if row.kind == "variable"}
    assert exports - ours - variables == set()
    arguments = [row for row in found if row.kind == "argument"]
    assert arguments
    assert [row.name for row in arguments if not row.why] == []


@pytest.mark.parametrize("scheduler", ["local", "pbs"])
def test_what_the_scheduler_lacks_is_explained_with_what_is_done_instead(
    desk: Path, scheduler: str
) -> None:
    launchers = "launchers: {default: torchrun, allowed: [torchrun]}\n"
    text = f"schema: 1\nname: s\ndescription: d\nscheduler: {scheduler}\n{launchers}"
    Path("s.yaml").write_text(text)
    Path("job.yaml").write_text("command: [python, t.py]\nlifecycle: {}\nsignal_before_end: 1m\n")
    sizes = ("nodes=1", "gpus_per_node=0", "tasks_per_node=1", "cpus_per_task=1", "time=1h")
    request = Request(path=Path("job.yaml"), site="s", overrides=tuple(map(parse_setting, sizes)))
    made = prepare(request)
    instead = find_batch_system(scheduler).instead
    missing = [row for row in rows(made) if row.kind == "missing"]
    assert {row.name: row.value for row in missing} == instead
    assert {row.origin for row in missing} == {"s.yaml:4"}
    assert all(row.why for row in missing)
    for key in ("lifecycle", "signal_before_end"):
        assert any(instead[key] in warning for warning in made.warnings)
