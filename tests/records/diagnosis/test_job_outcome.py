"""Logs of jobs -> whether they succeeded, failed or were stopped."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hpc_train.errors import LogParseError
from hpc_train.model.diagnosis import FirstFailure, JobEnd
from hpc_train.records.diagnosis.diagnose import diagnose_logs
from tests.records.diagnosis.logs import (
    ABORTS,
    CANCELLED,
    EXIT_1,
    LIMIT,
    STOP,
    WATCHDOG,
    judged,
    root,
    trace,
)


def test_training_that_just_stops_is_unknown_and_free_of_findings(tmp_path: Path) -> None:
    diagnosis = judged(tmp_path, "possible_oom: false\niter 1: loss 3.2, time 80.1ms\n" * 50)
    assert (diagnosis.outcome, diagnosis.findings) == ("unknown", ())


def test_errors_after_success_are_harmless(tmp_path: Path) -> None:
    diagnosis = judged(tmp_path, STOP + ABORTS + LIMIT)
    assert diagnosis.outcome == "success"
    assert diagnosis.why.startswith('0.out:1 says: run_stop, "status": "success"')
    assert diagnosis.findings
    assert {finding.severity for finding in diagnosis.findings} == {"benign"}
    assert diagnosis.root is None


def test_lines_of_different_logs_have_no_order(tmp_path: Path) -> None:
    done, failed = "epoch 1\n" * 50 + STOP, trace("ValueError: no checkpoint")
    assert judged(tmp_path, done, failed, end=JobEnd(exit_code=1)).outcome == "failed"
    assert judged(tmp_path, failed + done, "", end=JobEnd(exit_code=1)).outcome == "success"


def test_a_warning_of_a_job_that_succeeded_stays_a_warning(tmp_path: Path) -> None:
    stalled = (
        "One or more tensors were submitted to be reduced by subset of ranks and are waiting for "
        "remainder of ranks for more than 60 seconds.\n"
    )
    diagnosis = judged(tmp_path, stalled + STOP)
    assert diagnosis.outcome == "success"
    assert [(one.id, one.severity) for one in diagnosis.findings] == [
        ("horovod_stalled", "warning")
    ]


def test_errors_before_success_were_survived(tmp_path: Path) -> None:
    assert judged(tmp_path, EXIT_1 + trace("ValueError: x") + STOP).outcome == "success"


def test_an_error_after_success_counts_only_where_an_exit_code_is_known(tmp_path: Path) -> None:
    text = STOP + trace("ValueError: x")
    assert judged(tmp_path, text).outcome == "success"
    diagnosis = judged(tmp_path, text, end=JobEnd(exit_code=1, state="FAILED"))
    assert root(diagnosis).id == "python_exception"
    assert "what came after failed" in diagnosis.why


def test_what_a_rank_says_needs_more_work_after_it_than_what_a_script_says(tmp_path: Path) -> None:
    said, work = "tar: write error: Disk quota exceeded\n", "iter 5: loss 3.2, time 80.1ms\n" * 20
    assert judged(tmp_path, said + work).outcome == "unknown"
    assert root(judged(tmp_path, f"[rank3]: {said}{work}")).id == "disk_quota"


def test_each_log_in_which_an_error_stands_is_shown(tmp_path: Path) -> None:
    said = "tar: write error: Disk quota exceeded\n"
    evidence = root(judged(tmp_path, job_out=said, job_err=said + said)).evidence
    assert [(one.source, one.line) for one in evidence] == [("job-out.out", 1), ("job-err.out", 1)]


def test_second_trial_of_a_log_counts(tmp_path: Path) -> None:
    start = STOP.replace("run_stop", "run_start").replace("success", "")
    diagnosis = judged(tmp_path, STOP + start + trace("ValueError: x"))
    assert root(diagnosis).id == "python_exception"


def test_work_that_cannot_be_saved_has_failed(tmp_path: Path) -> None:
    done = "{'train_runtime': 91.0, 'train_samples_per_second': 1.0}\n"
    diagnosis = judged(tmp_path, done + trace("OSError: [Errno 122] Disk quota exceeded"))
    assert root(diagnosis).id == "disk_quota"
    assert "what came after failed" in diagnosis.why
    assert judged(tmp_path, done + ABORTS).outcome == "success"


def test_job_after_its_bandwidth_test_can_fail_in_nccl(tmp_path: Path) -> None:
    bandwidth = "# Avg bus bandwidth    : 38.2\n"
    assert root(judged(tmp_path, bandwidth + WATCHDOG.format(rank=0))).id == "nccl_watchdog_timeout"
    assert judged(tmp_path, bandwidth + ABORTS).outcome == "success"


def test_program_that_says_that_it_failed(tmp_path: Path) -> None:
    aborted = judged(tmp_path, STOP.replace("success", "aborted"))
    assert root(aborted).id == "mlperf_aborted"
    wrong = judged(tmp_path, "# Out of bounds values : 4 FAILED\n# Avg bus bandwidth : 3\n")
    assert wrong.outcome == "failed"
    assert root(wrong).evidence[0].line == 1


def test_of_two_results_the_last_one_counts(tmp_path: Path) -> None:
    aborted = STOP.replace("success", "aborted")
    assert root(judged(tmp_path, STOP + aborted)).id == "mlperf_aborted"
    assert judged(tmp_path, aborted + STOP).outcome == "success"


def test_cancelled_by_a_person_is_no_failure(tmp_path: Path) -> None:
    diagnosis = judged(tmp_path, "iter 5: loss 3.2\n" + CANCELLED)
    assert diagnosis.outcome == "unknown"
    assert [(one.id, one.severity) for one in diagnosis.findings] == [("slurm_cancelled", "info")]


def test_exit_code_0_of_a_run_is_success(tmp_path: Path) -> None:
    diagnosis = judged(tmp_path, trace("ValueError: caught"), end=JobEnd(exit_code=0))
    assert diagnosis.outcome == "success"
    assert {finding.severity for finding in diagnosis.findings} == {"benign"}


def test_run_that_has_an_end_event_and_fails_after_it(tmp_path: Path) -> None:
    text = '@hpct {"event": "end"}\n' + trace("ValueError: x")
    assert judged(tmp_path, text, end=JobEnd(exit_code=1, state="FAILED")).outcome == "failed"
    after = judged(tmp_path, '@hpct {"event": "end"}\n' + ABORTS, end=JobEnd(exit_code=134))
    assert after.outcome == "success"
    assert after.why.endswith("exit code 134 came after")


def test_unknown_failure_shows_the_end_of_the_first_failing_rank(tmp_path: Path) -> None:
    first_failure = FirstFailure(rank=1, host="n1", exit_code=4, said_by="status.json")
    diagnosis = judged(
        tmp_path,
        rank_0="fine\n",
        rank_1="\n".join(f"line {number}" for number in range(20)) + "\rbar 9\n\n",
        end=JobEnd(state="FAILED", exit_code=4, problem="rank 1: 4", first_failure=first_failure),
    )
    found = root(diagnosis)
    assert (found.id, found.title) == (
        "unknown_failure",
        "It failed (rank 1: 4), and no line that is known says why",
    )
    assert [(one.source, one.line, one.text) for one in diagnosis.last_lines[-2:]] == [
        ("rank-1.out", 19, "line 18"),
        ("rank-1.out", 20, "bar 9"),
    ]
    assert len(diagnosis.last_lines) == 8


def test_failed_run_without_any_log(tmp_path: Path) -> None:
    diagnosis, _ = diagnose_logs([], [], JobEnd(state="FAILED", problem="nothing was written"))
    assert root(diagnosis).id == "unknown_failure"


def test_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.out").write_text(LIMIT)
    (tmp_path / "b.out.gz").write_bytes(gzip.compress(LIMIT.encode())[:20])
    files = [tmp_path / "a.out", tmp_path / "b.out.gz"]
    diagnosis, unreadable = diagnose_logs(files, ["a.out", "b.out.gz"], JobEnd())
    assert root(diagnosis).id == "slurm_time_limit"
    assert len(unreadable) == 1
    assert "b.out.gz" in unreadable[0]
    with pytest.raises(LogParseError, match=r"b\.out\.gz"):
        diagnose_logs(files[1:], ["b.out.gz"], JobEnd())


@pytest.mark.parametrize("hostile", ["\x00\xff" * 500, "Traceback (most recent call last):\n" * 99])
def test_whatever_bytes_are_read(tmp_path: Path, hostile: str) -> None:
    assert judged(tmp_path, hostile).outcome in ("unknown", "failed")


def test_document_that_quotes_logs_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("It said:\n" + LIMIT)
    diagnosis, _ = diagnose_logs([tmp_path / "notes.md"], ["notes.md"], JobEnd())
    assert diagnosis.outcome == "unknown"
    assert {finding.severity for finding in diagnosis.findings} == {"info"}


def test_the_last_epoch_is_success_unless_something_fails_after_it(tmp_path: Path) -> None:
    epochs = "Epoch 1/2, loss: 0.9\nEpoch 2/2, loss: 0.8\n"
    assert judged(tmp_path, epochs + "Best accuracy: 0.85\n").outcome == "success"
    assert judged(tmp_path, epochs + EXIT_1).outcome == "failed"
