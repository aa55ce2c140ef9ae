"""Once more what has no result, from the run folders alone."""

import itertools
import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hpc_train.base.errors import StoreError, SubmitError
from hpc_train.runs.json_files import read_json
from hpc_train.runs.run import JobState, Manifest, RunFolder, RunName
from hpc_train.runs.run_folders import run_folders
from hpc_train.runs.run_states import runs_below
from hpc_train.scripts.prepare import Prepared
from hpc_train.submissions.retry import attempts, retry
from hpc_train.submissions.submit import Submitted, no_output, submit
from tests.slurm.fake_slurm import FakeSlurm, option
from tests.submissions.on_slurm import RESULTS, age, folders, job, says, study, submission


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
    retry(done.home, [], said.append, exclude_failed_nodes=True)
    assert option(slurm.calls("sbatch")[2], "exclude") == "n3,n7"
    assert said[0] == "without the nodes n3, n7"
    assert slurm.calls("sinfo") == [], "no run was lost"


def test_nodes_that_failed_an_earlier_attempt_stay_excluded(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    for attempt, host in enumerate(("n7", "n3"), 1):
        failure = {"rank": 0, "host": host, "exit_code": 1}
        says(run, ended=1001.0, exit_code=1, failure=failure)
        fails(slurm, f"100{attempt}")
        (run,) = retry(run.path, [], no_output, exclude_failed_nodes=True).new
    assert [option(call, "exclude") for call in slurm.calls("sbatch")] == [None, "n7", "n3,n7"]


@pytest.mark.parametrize("known", [True, False])
def test_without_the_nodes_that_are_broken(slurm: FakeSlurm, known: bool) -> None:
    (run,) = submit(job(), RESULTS, []).new
    slurm.on("sinfo", "printf 'n2\\nn1\\n'")
    fails(slurm, "1001", "NODE_FAIL") if known else slurm.forgets()
    retry(run.path, [], no_output, exclude_failed_nodes=True)
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


def test_nodes_that_other_runs_report_as_bad_are_excluded(slurm: FakeSlurm) -> None:
    runs = [submit(job(), RESULTS, []).new[0] for _ in range(3)]
    for number, (run, host) in enumerate(zip(runs, ("n7", "n5", "n5"), strict=True), 1):
        failure = {"rank": 0, "host": host, "exit_code": 1}
        says(run, started=time.time(), ended=time.time(), exit_code=1, failure=failure)
        slurm.becomes(f"100{number}", "FAILED", nodes=host, reason="NonZeroExitCode")
    lost = {"rank": 0, "host": "n3", "exit_code": 1, "lost_peer": True}
    for number in (4, 5):
        run = submit(job(), RESULTS, []).new[0]
        says(run, started=time.time(), ended=time.time(), exit_code=1, failure=lost)
        slurm.becomes(f"100{number}", "FAILED", nodes="n[3-4]", reason="NonZeroExitCode")
    retry(runs[0].path, [], no_output, exclude_failed_nodes=True)
    assert option(slurm.calls("sbatch")[-1], "exclude") == "n5,n7"


def fails_on_n1(slurm: FakeSlurm, job_id: str) -> None:
    slurm.becomes(job_id, "FAILED", nodes="n1", reason="NonZeroExitCode")


@pytest.mark.parametrize("kind", ["study", "job"])
def test_the_chain_of_retries_is_followed_to_its_beginning(slurm: FakeSlurm, kind: str) -> None:
    done = submit(study() if kind == "study" else job(), RESULTS, [])
    chain = [done.new[0]]
    for _ in range(3):
        fails_on_n1(slurm, submission(chain[0]).native_id)
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
    fails_on_n1(slurm, submission(first).native_id)
    said: list[str] = []
    (second,) = retry(first.path, [], said.append).new
    assert f"{second.run_id} begins at step 0: {first.run_id} has a checkpoint of step 40" in said
    (command,) = [line for line in said if line.startswith("  hpctrain retry ")]
    *_, setting = command.split()
    assert setting == f"env.HPCTRAIN_CHECKPOINTS={first.path.absolute()}/checkpoints"
    fails_on_n1(slurm, submission(second).native_id)
    (third,) = retry(second.path, [], said.append, settings=(setting,)).new
    assert f"HPCTRAIN_CHECKPOINTS={first.path.absolute()}/checkpoints" in third.script.read_text()


# Retries in a child of its own for each line that it reads; that child is killed before its N-th
# step: a program that it starts, or a change of a file or folder below the study.
RETRY = """\
import os, signal, sys
from pathlib import Path
import hpc_train.slurm.submitit_script
from hpc_train.submissions.retry import retry

def kill_before(step, home):
    def count(event, arguments):
        nonlocal step
        if event == "open":
            changes = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        else:
            changes = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir")
        if event == "subprocess.Popen" or (changes and str(arguments[0]).startswith(home)):
            step -= 1
            if step == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)

for line in sys.stdin:
    step, path = line.split()
    child = os.fork()
    if child == 0:
        kill_before(int(step), path)
        retry(Path(path), [], lambda text: None)
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@contextmanager
def killing() -> Iterator[subprocess.Popen[str]]:
    """Start the process that retries and kills."""
    with subprocess.Popen(
        [sys.executable, "-c", RETRY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def killed(process: subprocess.Popen[str], step: int, home: Path) -> bool:
    """Retry, killed before a step; whether it came so far."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{step} {home}\n")
    process.stdin.flush()
    status = int(process.stdout.readline())
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


def failed(slurm: FakeSlurm, prepared: Prepared) -> Path:
    """Submit, and let all but the first run of a study fail; what is known is written down."""
    done = submit(prepared, RESULTS, [])
    first, *rest = sorted(done.new, key=lambda run: submission(run).native_id)
    if rest:
        says(first, ended=1001.0, exit_code=0)
    for run in rest or [first]:
        slurm.becomes(submission(run).native_id, "FAILED", nodes="n1")
    runs_below(done.home)
    return done.home.absolute()


def again(home: Path) -> None:
    """Ask how all stands and retry, as whoever was interrupted does."""
    runs_below(home)
    with suppress(StoreError):
        retry(home, [], no_output)


def place(run: RunFolder) -> str:
    """Return what all attempts of a run have in common."""
    name = RunName.parse(run.run_id)
    return f"{name.stem}-r{name.repetition}" if name else "job"


def check(slurm: FakeSlurm, home: Path, before: list[str], places: int) -> None:
    """Each run has one job more, each new job is known by one run, and nothing is in doubt."""
    new = [job for job in slurm.ids() if job not in before]
    known = {run: submission(run).native_id for run in run_folders(home) if run.submission.exists()}
    retried = [run for run, job in known.items() if job in new]
    assert sorted(known[run] for run in retried) == sorted(new)
    assert Counter(map(place, retried)) == dict.fromkeys(map(place, retried), 1)
    assert len(retried) == places
    assert JobState.UNKNOWN not in {run.state for run in runs_below(home)}
    hidden = {path.name for path in home.iterdir() if path.name.startswith(".")}
    assert hidden <= {".submit.lock"}


@pytest.mark.process
@pytest.mark.parametrize(
    ("kind", "places"), [pytest.param("study", 3, marks=pytest.mark.long), ("job", 1)]
)
def test_killed_at_each_step(slurm: FakeSlurm, tmp_path: Path, kind: str, places: int) -> None:
    home = failed(slurm, study() if kind == "study" else job())
    with killing() as process:
        for step in itertools.count(1):
            mine = tmp_path / str(step) / home.name
            shutil.copytree(home, mine)
            before = slurm.ids()
            went_on = not killed(process, step, mine)
            again(mine)
            age(run for run in run_folders(mine) if run.submission.exists() and in_doubt(run))
            again(mine)
            check(slurm, mine, before, places)
            if went_on:
                break
    assert step > 10 * places


def in_doubt(run: RunFolder) -> bool:
    """Whether nobody knows which job a run is."""
    return not submission(run).answered


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


def made_only(slurm: FakeSlurm, home: Path) -> list[RunFolder]:
    """Retry, killed between the new folders and the first sbatch; return them."""
    there = set(run_folders(home))
    slurm.on("scontrol", "kill -KILL $PPID; exit 1")
    # One run is no array, whose size would be asked for.
    slurm.on("sbatch", "kill -KILL $PPID; exit 1")
    argv = [sys.executable, "-m", "hpc_train", "retry", home.name]
    done = subprocess.run(argv, capture_output=True, timeout=240)
    assert done.returncode == -signal.SIGKILL, done.stderr
    for program in ("scontrol", "sbatch"):
        slurm.on(program, "")
    new = [run for run in run_folders(home) if run not in there]
    for run in new:
        run.submission.unlink(missing_ok=True)
    assert {run.state for run in runs_below(home) if run.folder in new} == {JobState.UNKNOWN}
    return new


@pytest.mark.process
@pytest.mark.parametrize("whole", [True, False])
def test_the_folder_of_a_job_is_handed_over_by_its_own_name(slurm: FakeSlurm, whole: bool) -> None:
    home = failed(slurm, job())
    (old,) = run_folders(home)
    (left,) = made_only(slurm, home)
    assert retry(home if whole else old.path, [], no_output).new == (left,)
    with pytest.raises(StoreError, match="it was retried already"):
        retry(old.path, [], no_output)
