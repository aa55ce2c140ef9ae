"""Once more what has no result, from the run folders alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hpc_train.errors import StoreError, SubmitError
from hpc_train.json_files import read_json
from hpc_train.model.run import Manifest, RunFolder
from hpc_train.pipeline.retry import retry
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import no_output, submit
from hpc_train.pipeline.submit_runs import Submitted
from tests.pipeline.on_slurm import EXCLUDE, RESULTS, folders, job, says, study, submission
from tests.submissions.slurm.fake_slurm import FakeSlurm, option


def named(done: Submitted, job_id: str) -> RunFolder:
    """Return the new run that is a certain job."""
    (run,) = [run for run in done.new if submission(run).native_id == job_id]
    return run


def fails(slurm: FakeSlurm, job_id: str, state: str = "FAILED") -> None:
    slurm.becomes(job_id, state, nodes="n1", reason="NonZeroExitCode")


def test_only_what_failed_is_tried_again(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    fails(slurm, "1001_2")
    says(named(done, "1001_1"), ended=1001.0, exit_code=0)
    old = named(done, "1001_2")
    said: list[str] = []
    (new,) = retry(done.home, ["hpctrain", "retry"], said.append).new
    assert new.run_id == f"{old.run_id}.2"
    assert new.script.read_bytes() == old.script.read_bytes()
    assert submission(new).native_id == "1003"
    assert said == ["cost: 1 run without a time limit: the cost has no bound (--time sets one)"]
    before, after = (read_json(run.manifest, Manifest) for run in (old, new))
    assert (after.attempt, after.repetition, after.run_id) == (2, before.repetition, new.run_id)
    assert (after.plan, after.script_digest) == (before.plan, before.script_digest)
    assert after.provenance["argv"] == ["hpctrain", "retry"]
    with pytest.raises(StoreError, match="s: nothing to retry; 5 runs COMPLETED, FAILED, PENDING"):
        retry(done.home, [], no_output)


@pytest.mark.parametrize("state", ["TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"])
def test_every_way_to_fail_counts(slurm: FakeSlurm, state: str) -> None:
    done = submit(study(), RESULTS, [])
    fails(slurm, "1002_1", state)
    assert len(retry(done.home, [], no_output).new) == 1


def test_attempts_are_counted_and_share_an_array(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    for job_id in ("1001_1", "1001_2"):
        fails(slurm, job_id)
    second = retry(done.home, [], no_output)
    assert option(slurm.calls("sbatch")[2], "array") == "1,2"
    fails(slurm, "1003_2")
    (third,) = retry(done.home, [], no_output).new
    assert third.run_id == named(second, "1003_2").run_id.replace(".2", ".3")


def test_one_run_of_a_study(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    for job_id in ("1001_1", "1001_2"):
        fails(slurm, job_id)
    old = named(done, "1001_1")
    assert [run.run_id for run in retry(old.path, [], no_output).new] == [f"{old.run_id}.2"]
    with pytest.raises(StoreError, match=f"{old.run_id}: it was retried already"):
        retry(old.path, [], no_output)
    with pytest.raises(StoreError, match="nothing to retry; 1 run PENDING"):
        retry(named(done, "1002_1").path, [], no_output)


def test_a_single_job(slurm: FakeSlurm) -> None:
    done = submit(job(), RESULTS, [])
    (old,) = done.new
    fails(slurm, "1001")
    (new,) = retry(old.path, [], no_output).new
    assert new.run_id.rpartition("-")[2] == old.run_id.rpartition("-")[2]
    assert new.run_id > old.run_id
    manifest = read_json(new.manifest, Manifest)
    assert (manifest.attempt, manifest.repetition, manifest.study) == (2, 1, None)
    assert len(folders(done.home)) == 2
    with pytest.raises(StoreError, match=f"{old.run_id}: it was retried already"):
        retry(old.path, [], no_output)
    assert len(folders(done.home)) == 2


def test_a_folder_that_was_removed_is_made_again_from_a_sibling(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    gone, sibling = named(done, "1001_1"), named(done, "1001_2")
    shutil.rmtree(gone.path)
    (new,) = retry(done.home, [], no_output).new
    assert new.run_id == gone.run_id
    assert new.script.read_bytes() == sibling.script.read_bytes()
    manifest = read_json(new.manifest, Manifest)
    assert (manifest.run_id, manifest.repetition, manifest.attempt) == (gone.run_id, 1, 1)
    assert manifest.axes == read_json(sibling.manifest, Manifest).axes


def test_damaged_files_are_named(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    fails(slurm, "1001")
    runs_below(run.path)
    text = run.script.read_text()
    run.script.unlink()
    with pytest.raises(StoreError, match=r"job\.sbatch: No such file"):
        retry(run.path, [], no_output)
    run.script.write_text(text)
    run.manifest.write_text("{")
    with pytest.raises(StoreError, match=r"run\.json: damaged") as failure:
        retry(run.path, [], no_output)
    assert "remove the folder" in failure.value.hint


def test_a_refusal_leaves_nothing_new(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    fails(slurm, "1001_2")
    runs_below(done.home)
    before = folders(done.home)
    slurm.on("sbatch", "echo 'sbatch: error: no' >&2; exit 1")
    with pytest.raises(SubmitError, match="sbatch: no"):
        retry(done.home, [], no_output)
    assert folders(done.home) == before
    assert (done.home / "study.json").exists()


def test_without_the_nodes_that_failed(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    for job_id, host in (("1001_1", "n7.cluster"), ("1001_2", "n3")):
        failure = {"rank": 0, "host": host, "exit_code": 1}
        says(named(done, job_id), ended=1001.0, exit_code=1, failure=failure)
        fails(slurm, job_id)
    # A run that goes on blames nobody.
    says(named(done, "1002_1"), failure={"rank": 0, "host": "n9", "exit_code": 1})
    said: list[str] = []
    retry(done.home, [], said.append, EXCLUDE)
    assert option(slurm.calls("sbatch")[2], "exclude") == "n3,n7"
    assert said[0] == "without the nodes n3, n7"
    assert slurm.calls("sinfo") == [], "no run was lost"


def test_nodes_that_failed_an_earlier_attempt_stay_excluded(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    for attempt, host in enumerate(("n7", "n3"), 1):
        failure = {"rank": 0, "host": host, "exit_code": 1}
        says(run, ended=1001.0, exit_code=1, failure=failure)
        fails(slurm, f"100{attempt}")
        (run,) = retry(run.path, [], no_output, EXCLUDE).new
    assert [option(call, "exclude") for call in slurm.calls("sbatch")] == [None, "n7", "n3,n7"]


def test_a_damaged_manifest_is_replaced_from_a_sibling(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    damaged, sibling = named(done, "1001_1"), named(done, "1001_2")
    fails(slurm, "1001_1")
    runs_below(done.home)
    damaged.manifest.write_text("{")
    (new,) = retry(done.home, [], no_output).new
    assert new.run_id == f"{damaged.run_id}.2"
    assert new.script.read_bytes() == sibling.script.read_bytes()


@pytest.mark.parametrize("known", [True, False])
def test_without_the_nodes_that_are_broken(slurm: FakeSlurm, known: bool) -> None:
    (run,) = submit(job(), RESULTS, []).new
    slurm.on("sinfo", "printf 'n2\\nn1\\n'")
    fails(slurm, "1001", "NODE_FAIL") if known else slurm.forgets()
    retry(run.path, [], no_output, EXCLUDE)
    assert option(slurm.calls("sbatch")[1], "exclude") == "n1,n2"


def test_retried_runs_of_a_nested_study_share_an_allocation(slurm: FakeSlurm) -> None:
    done = submit(study("placement=nested", "time=1m"), RESULTS, [])
    fails(slurm, "1001", "NODE_FAIL")
    first, *rest = done.new
    says(first, ended=1001.0, exit_code=0)
    again = retry(done.home, [], no_output)
    assert {run.run_id for run in again.new} == {f"{run.run_id}.2" for run in rest}
    assert {submission(run).native_id for run in again.new} == {"1002"}
    text = Path(slurm.calls("sbatch")[1][-2]).read_text()
    assert f"{rest[0].run_id}.2" in text
    assert f"{first.run_id} " not in text


def test_a_job_that_is_tried_again_is_not_tried_a_third_time(slurm: FakeSlurm) -> None:
    done = submit(job(), RESULTS, [])
    fails(slurm, "1001")
    (second,) = retry(done.home, [], no_output).new
    assert read_json(second.manifest, Manifest).provenance["retry_of"] == done.new[0].run_id
    with pytest.raises(StoreError, match="j: nothing to retry; 2 runs FAILED, PENDING"):
        retry(done.home, [], no_output)
    fails(slurm, "1002")
    (third,) = retry(done.home, [], no_output).new
    assert read_json(third.manifest, Manifest).attempt == 3
