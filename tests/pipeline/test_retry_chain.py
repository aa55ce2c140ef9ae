"""Attempts of a run: each knows the one that it repeats, to the first."""

from __future__ import annotations

import json
import shutil

import pytest

from hpc_train.pipeline.retry import RetryOptions, attempts, retry
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import no_output, submit
from tests.pipeline.on_slurm import RESULTS, job, study, submission
from tests.submissions.slurm.fake_slurm import FakeSlurm


def fails(slurm: FakeSlurm, job_id: str) -> None:
    slurm.becomes(job_id, "FAILED", nodes="n1", reason="NonZeroExitCode")


def test_a_sibling_that_gave_its_script_was_not_tried_again(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    gone, sibling = [run for run in done.new if submission(run).native_id.startswith("1001")]
    shutil.rmtree(gone.path)
    (new,) = retry(done.home, [], no_output).new
    fails(slurm, submission(sibling).native_id)
    runs = runs_below(done.home)
    made = next(run for run in runs if run.folder == new)
    assert attempts(made, runs) == [made]
    assert [run.run_id for run in retry(sibling.path, [], no_output).new] == [f"{sibling.run_id}.2"]


@pytest.mark.parametrize("kind", ["study", "job"])
def test_the_chain_of_retries_is_followed_to_its_beginning(slurm: FakeSlurm, kind: str) -> None:
    done = submit(study() if kind == "study" else job(), RESULTS, [])
    chain = [done.new[0]]
    for _ in range(3):
        fails(slurm, submission(chain[0]).native_id)
        (new,) = retry(done.home, [], no_output).new
        chain.insert(0, new)
    there = runs_below(done.home)
    by_folder = {run.folder: run for run in there}
    assert [run.folder for run in attempts(by_folder[chain[0]], there)] == chain
    assert [run.folder for run in attempts(by_folder[chain[2]], there)] == chain[2:]


def test_the_checkpoints_of_the_earlier_attempt_are_named(slurm: FakeSlurm) -> None:
    (first,) = submit(job("lifecycle={}"), RESULTS, []).new
    start = {"restart": 0, "started": 1.0, "ended": 2.0, "exit_code": 1, "step": 40}
    first.restarts.write_text(json.dumps(start) + "\n")
    fails(slurm, submission(first).native_id)
    said: list[str] = []
    (second,) = retry(first.path, [], said.append).new
    assert f"{second.run_id} begins at step 0: {first.run_id} has a checkpoint of step 40" in said
    (command,) = [line for line in said if line.startswith("  hpctrain retry ")]
    *_, setting = command.split()
    assert setting == f"env.HPCTRAIN_CHECKPOINTS={first.path.absolute()}/checkpoints"
    fails(slurm, submission(second).native_id)
    (third,) = retry(second.path, [], said.append, RetryOptions(settings=(setting,))).new
    assert f"HPCTRAIN_CHECKPOINTS={first.path.absolute()}/checkpoints" in third.script.read_text()
