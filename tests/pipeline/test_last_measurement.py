"""The last measurement of a run that is running."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hpc_train.model.plan import Topology
from hpc_train.model.run import JobStart, JobStatus, Run
from hpc_train.model.submission import JobState
from hpc_train.pipeline.last_measurement import (
    LastMeasurement,
    Progress,
    RunProgress,
    hours_used,
    time_left,
)
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import submit
from tests.pipeline.on_slurm import RESULTS, job
from tests.submissions.slurm.fake_slurm import FakeSlurm

LEFT = "1 h 50 min to the time limit, 0.167 node-h"
EVENT = '@hpct {"step": %d, "step_time": 0.25, "loss": %s}\n'


@pytest.fixture
def run(slurm: FakeSlurm) -> Iterator[Run]:
    done = submit(job("time=2h"), RESULTS, [])
    (found,) = runs_below(done.home)
    status = JobStatus(started=time.time() - 600)
    yield msgspec.structs.replace(found, state=JobState.RUNNING, status=status)


def log(run: Run, text: str, name: str = "rank-0.out") -> None:
    with Path(run.folder.logs / name).open("a") as file:
        file.write(text)


def test_only_new_lines_are_read_and_the_last_counts(run: Run) -> None:
    last = LastMeasurement(run)
    assert last.text() == ""
    log(run, EVENT % (1, "2.5") + EVENT % (2, "1.5") + EVENT[:20])
    assert last.text() == "step 2, 0.25 s a step, loss 1.5"
    (run.folder.logs / "rank-0.out").write_text("x" * 200)
    assert last.text() == "step 2, 0.25 s a step, loss 1.5"


def test_the_time_to_the_limit(run: Run) -> None:
    assert time_left(run) == "1 h 50 min to the time limit"
    assert time_left(msgspec.structs.replace(run, status=None)) == ""


def test_a_line_is_returned_when_it_is_new_and_due(run: Run) -> None:
    log(run, EVENT % (1, "2.5"))
    rare, often = Progress(3600.0), Progress(0.0)
    line = f"{run.folder.run_id}  step 1, 0.25 s a step, loss 2.5, {LEFT}"
    assert rare.line([run]) == often.line([run]) == line
    log(run, EVENT % (2, "2.5"))
    assert (rare.line([run]), often.line([])) == ("", "")
    assert "step 2" in often.line([run])
    assert often.line([run]) == ""


def test_the_time_to_the_last_step_follows_from_the_number_of_steps(run: Run) -> None:
    log(run, '@hpct {"event": "start", "world_size": 2, "total_steps": 1201}\n' + EVENT % (1, "2"))
    name, progress = run.folder.run_id, RunProgress(3600.0)
    text = f"step 1, 0.25 s a step, loss 2, 5 min to step 1,201, {LEFT}"
    assert progress.texts([run]) == {name: text}
    log(run, EVENT % (2, "1"))
    assert progress.texts([run]) == {name: text}
    ended = msgspec.structs.replace(run, state=JobState.COMPLETED)
    assert progress.texts([ended]) == RunProgress(0.0).texts([ended]) == {}


def test_the_hours_are_those_of_all_starts(run: Run) -> None:
    assert run.status is not None
    assert run.manifest is not None
    began = run.status.started
    first = JobStart(restart=0, started=began - 9000, ended=began - 1800, exit_code=75)
    status = msgspec.structs.replace(run.status, restart_count=1)
    again = msgspec.structs.replace(run, status=status, starts=(first,))
    assert hours_used(again) == "2.17 node-h"
    topology = Topology(nodes=2, tasks_per_node=4, gpus_per_node=4, cpus_per_task=1)
    plan = msgspec.structs.replace(run.manifest.plan, topology=topology)
    manifest = msgspec.structs.replace(run.manifest, plan=plan)
    assert hours_used(msgspec.structs.replace(again, manifest=manifest)) == "17.3 GPU-h"
    assert hours_used(msgspec.structs.replace(run, status=None)) == ""


def test_a_slow_rank_is_named_while_its_run_is_watched(run: Run) -> None:
    for rank, seconds in enumerate((0.1, 0.3)):
        step = '@hpct {"event": "step", "step": %d, "step_time": 0.4, "compute_time": %g}\n'
        log(run, "".join(step % (n, seconds) for n in range(9)), f"rank-{rank}.out")
    (text,) = RunProgress(0.0).texts([run]).values()
    assert text.endswith("; slow: rank 1 takes 0.3 s a step, 3 times the median of the other ranks")
    # Each of several runs would have the logs of all its ranks opened.
    several = RunProgress(0.0).texts([run, run])
    assert "slow: " not in "".join(several.values())
