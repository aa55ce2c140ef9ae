"""A retry that is killed, at each thing that it does: asked again, it loses and doubles nothing."""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hpc_train.errors import StoreError
from hpc_train.model.run import RunFolder, RunName
from hpc_train.model.submission import JobState
from hpc_train.pipeline.prepared import Prepared
from hpc_train.pipeline.retry import retry
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import no_output, submit
from hpc_train.runs.run_folders import run_folders
from tests.pipeline.on_slurm import RESULTS, age, job, says, study, submission
from tests.submissions.slurm.fake_slurm import FakeSlurm

# Retries in a child of its own for each line that it reads; that child is killed before its N-th
# step: a program that it starts, or a change of a file or folder below the study.
RETRY = """\
import os, signal, sys
from pathlib import Path
import hpc_train.submissions.slurm.submitit_script
from hpc_train.pipeline.retry import retry

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
