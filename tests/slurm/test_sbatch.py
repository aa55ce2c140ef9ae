"""One call of sbatch: when Slurm is slow it is tried again, and never made twice."""

import logging
import os
import pwd
import time
from pathlib import Path

import pytest

from hpc_train.base.errors import SubmitError
from hpc_train.runs import batch_executor
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.sites.profile import Limits
from hpc_train.slurm.executor import SlurmExecutor
from hpc_train.slurm.sbatch import batches
from tests.slurm.fake_slurm import BUSY, FakeSlurm, option
from tests.slurm.made import runs
from tests.submissions.on_slurm import submission

SLOW = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


def job_id_for(home: Path, *names: str) -> str:
    """Submit runs; return the id of their job."""
    made = runs(home, *names)
    SlurmExecutor().submit(home, made, ExecutorOptions())
    return submission(made[0]).native_id.partition("_")[0]


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a moment instead of a minute; two further attempts."""
    monkeypatch.setattr(batch_executor, "_PAUSES_S", (0.001, 0.001))


def test_the_options_of_one_submission(tmp_path: Path) -> None:
    options = ExecutorOptions(limits=Limits(max_array_running=2), exclude=("n1", "n7"))
    (one,), (many,) = (batches(runs(tmp_path, *n), 1001) for n in (["p-r1"], ["q-r1", "q-r3"]))
    assert one.command(options, "hpctrain:c") == (
        "sbatch",
        f"--output={tmp_path}/p-r1/logs/job.out",
        "--comment=hpctrain:c",
        "--exclude=n1,n7",
        f"{tmp_path}/p-r1/job.sbatch",
        f"{tmp_path}/p-r1",
    )
    assert many.command(options, "c")[3:5] == ("--array=1,3%2", "--exclude=n1,n7")


def test_a_refusal_is_not_tried_again(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.on(
        "sbatch",
        "echo 'sbatch: error: Memory specification can not be satisfied' >&2\n"
        "echo 'sbatch: error: Batch job submission failed: Requested node configuration is not "
        "available' >&2; exit 1",
    )
    with pytest.raises(SubmitError) as failure:
        job_id_for(tmp_path, "p-r1")
    assert not failure.value.transient
    assert failure.value.message == (
        "sbatch: Memory specification can not be satisfied; "
        "Batch job submission failed: Requested node configuration is not available"
    )
    assert failure.value.hint
    assert len(slurm.calls("sbatch")) == 1
    assert slurm.calls("squeue") == []


def test_a_job_that_was_accepted_without_an_answer_is_found(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    slurm.on("sbatch", f'accept "$@"; echo "{SLOW}" >&2; exit 1')
    assert job_id_for(tmp_path, "p-r1", "p-r2") == "1001"
    assert len(slurm.calls("sbatch")) == 1
    (call,) = slurm.calls("squeue")
    assert option(call, "user") == pwd.getpwuid(os.getuid()).pw_name
    assert option(call, "jobs") is None


def test_what_was_not_accepted_is_submitted_once_more(
    slurm: FakeSlurm,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_executor, "_PAUSES_S", (0.2,))
    begun = time.monotonic()
    slurm.on("sbatch", f'[ $n -gt 1 ] || {{ echo "{SLOW}" >&2; exit 1; }}')
    with caplog.at_level(logging.WARNING):
        assert job_id_for(tmp_path, "p-r1") == "1002"
    assert len(slurm.calls("sbatch")) == 2
    assert time.monotonic() - begun >= 0.2
    assert "Slurm does not answer (Batch job submission failed: Socket timed out" in caplog.text


@pytest.mark.parametrize("names", [("p-r1",), ("p-r1", "p-r2")])
def test_of_two_that_were_accepted_the_older_one_stays(
    slurm: FakeSlurm, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """The first came through late, after the queue was searched for it."""
    late = f'[ $n = 1 ] || {{ accept "$@"; job=1001; accept "$@"; }}; echo "{SLOW}" >&2; exit 1'
    slurm.on("sbatch", late)
    assert job_id_for(tmp_path, *names) == "1001"
    assert len(slurm.calls("sbatch")) == 2
    assert slurm.calls("scancel") == [["1002"]]
    kept = [job for job in slurm.ids() if job.startswith("1001")]
    queue = (slurm.folder / "queue").read_text()
    assert len(kept) == queue.count("PENDING") == queue.count("CANCELLED") == len(names)


def test_nothing_is_sent_again_while_the_queue_cannot_be_seen(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    slurm.on("sbatch", f'accept "$@"; echo "{SLOW}" >&2; exit 1')
    slurm.on("squeue", f'[ $n -gt 2 ] || {{ echo "{BUSY}" >&2; exit 1; }}')
    assert job_id_for(tmp_path, "p-r1") == "1001"
    assert (len(slurm.calls("sbatch")), len(slurm.calls("squeue"))) == (1, 3)


@pytest.mark.parametrize(("squeue", "calls"), [("", 3), (f'echo "{BUSY}" >&2; exit 1', 1)])
def test_giving_up_keeps_what_was_asked(
    slurm: FakeSlurm, tmp_path: Path, squeue: str, calls: int
) -> None:
    slurm.on("sbatch", f'echo "{SLOW}" >&2; exit 1')
    slurm.on("squeue", squeue)
    (run,) = runs(tmp_path, "p-r1")
    with pytest.raises(SubmitError, match="sbatch was not answered: Batch job") as failure:
        SlurmExecutor().submit(tmp_path, [run], ExecutorOptions())
    assert failure.value.transient
    assert "hpctrain status " in failure.value.hint
    assert len(slurm.calls("sbatch")) == calls
    found = submission(run)
    assert not found.answered
    assert {option(argv, "comment") for argv in slurm.calls("sbatch")} == {found.comment}


def test_what_sbatch_took_without_an_id_is_not_sent_again(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.on("sbatch", "echo accepted; exit")
    with pytest.raises(SubmitError, match="sbatch was not answered: ") as failure:
        job_id_for(tmp_path, "p-r1")
    assert failure.value.transient
    assert len(slurm.calls("sbatch")) == 1


def test_a_script_of_a_site_may_print_before_the_id(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.on("sbatch", "echo Welcome; echo Submitted batch job 4711 on cluster alpha; exit")
    assert job_id_for(tmp_path, "p-r1") == "4711"


def test_further_attempts_keep_their_ending(tmp_path: Path) -> None:
    (batch,) = batches(runs(tmp_path, "p-r2.3", "p-r10.3"), 1001)
    assert batch.elements == (2, 10)
    assert batch.output == f"{tmp_path}/p-r%a.3/logs/job.out"
    assert batch.arguments == (f"{tmp_path}/p-r", ".3")


def test_attempts_do_not_share_an_array(tmp_path: Path) -> None:
    assert len(batches(runs(tmp_path, "p-r1", "p-r2.2"), 1001)) == 2


def test_different_scripts_do_not_share_an_array(tmp_path: Path) -> None:
    made = runs(tmp_path, "p-r1") + runs(tmp_path, "p-r2", text="#!/bin/bash\nother\n")
    assert len(batches(made, 1001)) == 2


def test_a_number_beyond_the_largest_is_a_job_of_its_own(tmp_path: Path) -> None:
    first, second = batches(runs(tmp_path, "p-r1", "p-r2", "p-r3"), 3)
    assert (first.elements, second.elements) == ((1, 2), ())
    assert [len(batch.runs) for batch in batches(runs(tmp_path / "x", "p-r1", "p-r2"), 0)] == [1, 1]


def test_a_percent_sign_in_a_path_is_no_pattern(tmp_path: Path) -> None:
    home = tmp_path / "100%j"
    (batch,) = batches(runs(home, "p-r1", "p-r2"), 1001)
    assert batch.output == f"{tmp_path}/100%%j/p-r%a/logs/job.out"
    assert batch.arguments[0] == f"{home}/p-r"


def test_single_jobs_are_never_an_array(tmp_path: Path) -> None:
    made = runs(tmp_path, "20261121-043123-758208-09be612d", "20261121-043124-758208-09be612d")
    assert [len(batch.runs) for batch in batches(made, 1001)] == [1, 1]


def test_the_users_comment_stands_behind_the_mark(slurm: FakeSlurm, tmp_path: Path) -> None:
    made = runs(tmp_path, "p-r1")
    SlurmExecutor().submit(tmp_path, made, ExecutorOptions(comment="for $(ada), größe"))
    comment = submission(made[0]).comment
    assert comment.startswith("hpctrain:")
    assert comment.endswith(" for $(ada), größe")
    assert option(slurm.calls("sbatch")[0], "comment") == comment


def test_the_queue_is_not_searched_before_that_time_is_over(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_executor, "_UNDER_WAY_S", 0.5)
    slurm.on("sbatch", f'[ $n -gt 1 ] || {{ echo "{SLOW}" >&2; exit 1; }}')
    assert job_id_for(tmp_path, "p-r1") == "1002"
    call, searched = (slurm.folder / f"{name}.1.argv" for name in ("sbatch", "squeue"))
    assert searched.stat().st_mtime - call.stat().st_mtime > 0.4
