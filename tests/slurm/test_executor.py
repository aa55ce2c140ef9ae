"""The executor on its own: batches in, standings out, one scancel."""

import datetime
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import SubmitError
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.json_files import write_submission
from hpc_train.runs.run import JobState, RunFolder, Script, SlurmEndpoint
from hpc_train.slurm.executor import SlurmExecutor
from tests.slurm.fake_slurm import BUSY, FakeSlurm, option
from tests.slurm.made import runs, submitted
from tests.submissions.on_slurm import says, submission

SLURM = SlurmExecutor()
SCRIPT = Script(text="#!/bin/bash\n# all of them\n", digest="d", template_digest="t")


def states(*made: RunFolder) -> dict[str, str]:
    found = SLURM.query({run: submission(run) for run in made})
    return {run.run_id: report.state.value for run, report in found.items()}


def test_what_is_asked_is_written_before_it_is_asked(slurm: FakeSlurm, tmp_path: Path) -> None:
    made = runs(tmp_path, "p-r1", "p-r2")
    slurm.on("sbatch", f"for r in 1 2; do cp {tmp_path}/p-r$r/submission.json $S/$r; done")
    SLURM.submit(tmp_path, made, ExecutorOptions())
    for number, run in enumerate(made, 1):
        before = msgspec.json.decode((slurm.folder / str(number)).read_bytes())
        after = submission(run)
        assert before["native_id"] == f"_{number}"
        assert before["comment"] == after.comment == option(slurm.calls("sbatch")[0], "comment")
        assert after.native_id == f"1001_{number}"


def test_after_a_silence_in_the_middle_the_rest_is_not_tried(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpc_train.runs.batch_executor._PAUSES_S", ())
    slurm.on("sbatch", f"[ $n = 1 ] || {{ echo '{BUSY}' >&2; exit 1; }}")
    made = runs(tmp_path, "p-r1", "q-r1", "s-r1")
    with pytest.raises(SubmitError, match="1 of 3 runs were submitted, then: sbatch was not") as e:
        SLURM.submit(tmp_path, made, ExecutorOptions())
    assert e.value.transient
    assert [run.submission.exists() for run in made] == [True, True, False]
    assert [submission(run).answered for run in made[:2]] == [True, False]


def test_each_cluster_is_asked_once(slurm: FakeSlurm, tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.touch()
    made = runs(tmp_path, "p-r1", "p-r2", "q-r1")
    SLURM.submit(tmp_path, made[:2], ExecutorOptions())
    SLURM.submit(tmp_path, made[2:], ExecutorOptions(cluster=SlurmEndpoint(conf=str(conf))))
    assert set(states(*made).values()) == {"PENDING"}
    assert len(slurm.calls("squeue")) == 2


def test_the_accounting_is_asked_since_the_oldest_of_the_forgotten_jobs(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    day_s = 86400.0
    young, old = runs(tmp_path, "p-r1", "p-r2")
    asked = {young: submitted(young, "8"), old: submitted(old, "7", age_s=9 * day_s)}
    SLURM.query(asked)
    (words,) = slurm.calls("sacct")
    since = datetime.date.fromisoformat(asked[old].submitted[:10]) - datetime.timedelta(days=1)
    assert option(words, "starttime") == since.isoformat()


def test_an_allocation_without_an_answer_is_found_for_all(slurm: FakeSlurm, tmp_path: Path) -> None:
    made = runs(tmp_path, "p-r1", "p-r2")
    SLURM.submit(tmp_path, made, ExecutorOptions(allocation=SCRIPT))
    for run in made:
        write_submission(run, msgspec.structs.replace(submission(run), native_id=""))
    slurm.becomes("1001", "RUNNING", start="1970-01-02T00:00:00", nodes="n1")
    says(made[0], started=2e5, ended=2e5 + 1, exit_code=3)
    found = SLURM.query({run: submission(run) for run in made})
    assert {run: (s.state, s.job) for run, s in found.items()} == {
        made[1]: (JobState.PENDING, "1001")
    }


@pytest.mark.parametrize(
    ("said", "message"),
    [("scancel: error: Access/permission denied", "Access/permission denied"), ("", "exit code 3")],
)
def test_a_scancel_that_fails_cancels_nothing(
    slurm: FakeSlurm, tmp_path: Path, said: str, message: str
) -> None:
    (run,) = runs(tmp_path, "p-r1")
    found = submitted(run, "7")
    slurm.on("scancel", f"echo -n '{said}' >&2; exit 3")
    with pytest.raises(SubmitError, match=f"scancel: {message}"):
        SLURM.cancel(tmp_path, {run: found})
    assert submission(run).state is None
