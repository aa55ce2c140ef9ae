"""A run is explained from its folder as its file was, before it was submitted."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpc_train.errors import NewerVersionError, StoreError, UnknownNameError
from hpc_train.json_files import to_json
from hpc_train.pipeline.explain import Explained, explain
from hpc_train.pipeline.explain_run import explain_run, find_run
from hpc_train.pipeline.prepared import Prepared
from hpc_train.pipeline.render import Request, prepare
from hpc_train.pipeline.submit import profile_facts
from hpc_train.runs.run_folders import create_runs
from hpc_train.specs.override import parse_setting
from tests.pipeline.runs_of import manifest, written

SITE = """\
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
    Path("big.yaml").write_text(SITE)
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
    facts = {**profile_facts(prepared.first.profile), "cwd": str(desk)}
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
    assert (run.title, run.changed) == ("", "")
    before = explain(submitted.points[0].plan, submitted.first.site)
    assert as_printed(run.items) == as_printed(before)
    assert {"the guide", ""} == {item.source for item in run.items if item.kind == "argument"}


def test_a_changed_profile_is_no_source(submitted: Prepared) -> None:
    Path("big.yaml").write_text(SITE.replace("=30", "=60"))
    run = explain_run(Path("kept/j/one"))
    assert run.changed == str(submitted.first.profile)
    found = {item.name: item for item in run.items}
    assert (found["srun --wait"].value, found["srun --wait"].source) == ("30", "")
    assert found["A"].origin == "job.yaml:2"
    Path("big.yaml").unlink()
    assert explain_run(Path("kept/j/one")) == run


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
