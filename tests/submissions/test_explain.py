"""Everything that stands in a script says where it comes from and why."""

import re
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import NewerVersionError, StoreError, UnknownNameError
from hpc_train.base.registry import names
from hpc_train.jobs.override import parse_setting
from hpc_train.runs.json_files import to_json
from hpc_train.runs.run_folders import create_runs
from hpc_train.scripts.explain import Explained, explain
from hpc_train.scripts.prepare import Prepared, Request, prepare
from hpc_train.submissions.explain_run import explain_run, find_run
from hpc_train.submissions.submit import profile_facts
from tests.submissions.runs_of import manifest, written

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
    return explain(made.points[0].plan, made.site.site)


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


SITE_OF_RUN = """\
schema: 1
name: big
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun], srun_args: [--wait=30]}
partitions: [{name: gpu, max_time: 1d}]
sources: [{what: the guide, date: "2026-11-01", confidence: high}]
"""


@pytest.fixture(params=["big", "{}/big.yaml"])
def submitted(desk: Path, request: pytest.FixtureRequest) -> Prepared:
    """Return a job whose run folder is kept/j/one."""
    Path("big.yaml").write_text(SITE_OF_RUN)
    Path("job.yaml").write_text("command: [python, t.py]\nenv: {A: b}\nname: j\n")
    words = ("nodes=2", "tasks_per_node=4", "gpus_per_node=4", "cpus_per_task=8", "time=1h")
    prepared = prepare(
        Request(
            path=Path("job.yaml"),
            site=request.param.format(desk),
            overrides=tuple(map(parse_setting, words)),
        )
    )
    (point,) = prepared.points
    facts = {**profile_facts(prepared.site.profile), "cwd": str(desk)}
    stored = manifest("one", spec=point.job.value, plan=point.plan, provenance=facts)
    create_runs(Path("kept/j"), [(stored, point.script)])
    return prepared


def as_printed(items: tuple[Explained, ...]) -> object:
    return msgspec.json.decode(to_json(items))


@pytest.mark.parametrize("word", ["on", "j", "kept/j/one"])
def test_a_run_has_the_explanation_of_its_file(submitted: Prepared, word: str) -> None:
    folder = find_run(Path(word), Path("kept"))
    assert folder is not None
    run = explain_run(folder)
    assert run.title == ""
    before = explain(submitted.points[0].plan, None)
    assert as_printed(run.items) == as_printed(before)
    assert {item.name: item.origin for item in run.items}["A"] == "job.yaml:2"


def test_a_file_is_no_run(submitted: Prepared) -> None:
    Path("two").write_text("#!/bin/sh\n")
    written(Path("kept/j"), "two", "")
    assert find_run(Path("two"), Path("kept")) is None
    for name in ("job.yaml", "none.yaml", "train.py"):
        assert find_run(Path(name), Path("kept")) is None
    with pytest.raises(UnknownNameError, match="did you mean 'one'"):
        find_run(Path("ome"), Path("kept"))


def test_a_damaged_run_is_named(submitted: Prepared) -> None:
    file = Path("kept/j/one/run.json")
    file.write_text('{"schema": 99}')
    with pytest.raises(NewerVersionError):
        find_run(Path("one"), Path("kept"))
    file.write_text("{")
    with pytest.raises(StoreError, match=r"one/run\.json"):
        explain_run(Path("kept/j/one"))
