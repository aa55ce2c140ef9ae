"""Logs of jobs that failed, were stopped or succeeded -> what is said of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hpc_train.errors import LogParseError
from hpc_train.model.diagnosis import Culprit, Diagnosis, Finding, JobEnd
from hpc_train.records.diagnosis.diagnose import diagnose_logs

STOP = ':::MLLOG {"key": "run_stop", "value": null, "metadata": {"status": "success"}}\n'
ABORTS = (
    "terminate called after throwing an instance of 'c10::DistBackendError'\n"
    "/work/run.sh: line 95: 298750 Aborted                 (core dumped) python train.py\n"
    "srun: error: n1: task 7: Exited with exit code 134\n"
)
LIMIT = (
    "slurmstepd: error: *** STEP 82.1 ON n1 CANCELLED AT 2025-04-24T11:46:38 DUE TO TIME LIMIT "
    "***\n"
)
CANCELLED = "slurmstepd: error: *** JOB 82 ON n1 CANCELLED AT 2025-04-24T11:46:38 ***\n"
EXIT_1 = "srun: error: n1: task 0: Exited with exit code 1\n"
HOST_OOM = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId=82.0. Some of the step tasks have been "
    "OOM Killed.\n"
)
GPU_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total "
    "capacity of 79.15 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process "
    "has 78.10 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and "
    "500.00 MiB is reserved by PyTorch but unallocated."
)
TRACE = (
    "{at}Traceback (most recent call last):\n"
    '{at}  File "/work/train.py", line 41, in <module>\n'
    "{at}    main()\n"
    '{at}  File "/work/model.py", line 7, in main\n'
    "{at}    raise Problem\n"
    "{at}{error}\n"
)
WATCHDOG = (
    "[rank{rank}]:[E424 10:46:05.05 ProcessGroupNCCL.cpp:757] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=900, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, "
    "Timeout(ms)=600000) ran for 600051 milliseconds before timing out.\n"
)
BOX = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "============================================================\n"
    "train.py FAILED\n"
    "------------------------------------------------------------\n"
    "Failures:\n"
    "[1]:\n"
    "  time      : 2025-04-24_10:00:09\n"
    "  host      : n1\n"
    "  rank      : 0 (local_rank: 0)\n"
    "  exitcode  : 1 (pid: 100)\n"
    "  error_file: <N/A>\n"
    "  traceback : To enable traceback see: elastic/errors.html\n"
    "------------------------------------------------------------\n"
    "Root Cause (first observed failure):\n"
    "[0]:\n"
    "  time      : {time}\n"
    "  host      : {host}\n"
    "  rank      : {rank} (local_rank: {rank})\n"
    "  exitcode  : {code} (pid: 103)\n"
    "  error_file: <N/A>\n"
    "  traceback : To enable traceback see: elastic/errors.html\n"
    "============================================================\n"
)


def trace(error: str, at: str = "") -> str:
    return TRACE.format(error=error, at=at)


def box(rank: int, code: int = 1, host: str = "n1", time: str = "2025-04-24_10:00:07") -> str:
    return BOX.format(rank=rank, code=code, host=host, time=time)


def judged(folder: Path, *texts: str, end: JobEnd | None = None, **named: str) -> Diagnosis:
    """Diagnose logs `0.out`, `1.out`, …, and those that are named."""
    logs = {f"{number}.out": text for number, text in enumerate(texts)}
    logs |= {f"{name.replace('_', '-')}.out": text for name, text in named.items()}
    for name, text in logs.items():
        (folder / name).write_text(text)
    files = [folder / name for name in logs]
    diagnosis, unreadable = diagnose_logs(files, list(logs), end or JobEnd())
    assert not unreadable
    return diagnosis


def root(diagnosis: Diagnosis) -> Finding:
    assert diagnosis.outcome == "failed"
    assert diagnosis.root is not None
    assert diagnosis.findings[0] is diagnosis.root
    return diagnosis.root


def roles(diagnosis: Diagnosis) -> dict[str, str]:
    return {finding.id: finding.role for finding in diagnosis.findings}


def test_training_that_just_stops_is_unknown_and_free_of_findings(tmp_path: Path) -> None:
    diagnosis = judged(tmp_path, "possible_oom: false\niter 1: loss 3.2, time 80.1ms\n" * 50)
    assert (diagnosis.outcome, diagnosis.findings) == ("unknown", ())


def test_errors_after_success_are_harmless(tmp_path: Path) -> None:
    diagnosis = judged(tmp_path, STOP + ABORTS + LIMIT)
    assert diagnosis.outcome == "success"
    assert diagnosis.why.startswith("0.out:1 says: :::MLLOG")
    assert diagnosis.findings
    assert {finding.severity for finding in diagnosis.findings} == {"benign"}
    assert diagnosis.root is None


def test_errors_before_success_were_survived(tmp_path: Path) -> None:
    assert judged(tmp_path, EXIT_1 + trace("ValueError: x") + STOP).outcome == "success"


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


def test_exit_code_of_a_check_before_is_no_root(tmp_path: Path) -> None:
    says = (
        'The application appears to have been direct launched using "srun",\n'
        "but OMPI was not built with SLURM's PMI support and therefore cannot\nexecute.\n"
    )
    diagnosis = judged(tmp_path, EXIT_1 + "usage: check\n" + EXIT_1 + says)
    assert root(diagnosis).id == "openmpi_direct_launch_without_pmi"
    assert roles(diagnosis)["exit_error"] == "consequence"


def test_exit_code_alone_is_a_root(tmp_path: Path) -> None:
    assert root(judged(tmp_path, "hello\n" + EXIT_1)).id == "exit_error"


def test_host_memory_and_what_its_end_makes_others_say(tmp_path: Path) -> None:
    worker = "RuntimeError: DataLoader worker (pid 5) is killed by signal: Killed."
    killed = "srun: error: n1: task 3: Exited with exit code 137\n"
    diagnosis = judged(tmp_path, trace(worker, "[rank2]: ") + killed + HOST_OOM + EXIT_1)
    assert root(diagnosis).id == "slurm_host_oom"
    assert "cuda_oom" not in roles(diagnosis)


def test_memory_of_the_gpu_is_not_that_of_the_host(tmp_path: Path) -> None:
    diagnosis = judged(tmp_path, trace(GPU_OOM, "[rank3]: ") + box(3) + EXIT_1)
    found = root(diagnosis)
    assert (found.id, found.evidence[0].rank) == ("cuda_oom", 3)
    assert "python_exception" not in roles(diagnosis)
    assert "slurm_host_oom" not in roles(diagnosis)


def test_first_rank_of_torchrun_wins_over_the_first_line(tmp_path: Path) -> None:
    text = trace("ValueError: late", "[rank0]: ") + trace("KeyError: 'first'", "[rank3]: ")
    assert root(judged(tmp_path, text)).evidence[0].rank == 0
    diagnosis = judged(tmp_path, text + box(3))
    assert root(diagnosis).evidence[0].rank == 3
    assert "first" in root(diagnosis).title
    assert diagnosis.first_failure == Culprit(
        rank=3, host="n1", exit_code=1, time="2025-04-24T10:00:07", said_by="torchrun"
    )


def test_victims_of_other_agents_are_not_first(tmp_path: Path) -> None:
    text = box(1, code=-15, host="n1", time="2025-04-24_10:00:01")
    text += box(5, code=1, host="n2", time="2025-04-24_10:00:03")
    text += box(9, code=1, host="n3", time="2025-04-24_10:00:04")
    first = judged(tmp_path, text).first_failure
    assert first is not None
    assert (first.rank, first.host) == (5, "n2")


def test_first_rank_of_the_run_wins(tmp_path: Path) -> None:
    culprit = Culprit(rank=2, host="n2", exit_code=1, said_by="status.json")
    diagnosis = judged(
        tmp_path,
        rank_0=trace("ValueError: a"),
        rank_2=trace("ValueError: b"),
        end=JobEnd(state="FAILED", exit_code=1, first_failure=culprit),
    )
    assert root(diagnosis).evidence[0].source == "rank-2.out"


def test_echoes_of_a_dead_rank_are_no_root(tmp_path: Path) -> None:
    echo = "torch.distributed.DistBackendError: NCCL error: remote process exited"
    diagnosis = judged(tmp_path, trace(echo, "[rank0]: ") + trace("ValueError: b", "[rank1]: "))
    assert root(diagnosis).evidence[0].rank == 1


def test_times_decide_before_lines(tmp_path: Path) -> None:
    node = LIMIT.replace("TIME LIMIT", "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS")
    later = LIMIT.replace("TIME LIMIT", "PREEMPTION").replace("11:46:38", "12:46:38")
    assert root(judged(tmp_path, later, node)).id == "slurm_node_failure"
    earlier = LIMIT.replace("TIME LIMIT", "PREEMPTION").replace("11:46:38", "10:46:38")
    assert root(judged(tmp_path, node, earlier)).id == "slurm_preempted"


def test_time_limit_after_a_hang_is_its_consequence(tmp_path: Path) -> None:
    text = "".join(WATCHDOG.format(rank=rank) for rank in (0, 1, 3))
    diagnosis = judged(tmp_path, text + LIMIT, end=JobEnd(ranks=4))
    assert root(diagnosis).id == "nccl_watchdog_timeout"
    assert "rank 2 never said that it waited" in root(diagnosis).title
    assert roles(diagnosis)["slurm_time_limit"] == "consequence"


def test_time_limit_alone_is_a_root(tmp_path: Path) -> None:
    text = "iter 5: loss 3.2\n" + LIMIT + "srun: error: n1: task 0: Terminated\n"
    assert root(judged(tmp_path, text)).id == "slurm_time_limit"


def test_cancelled_by_a_person_is_no_failure(tmp_path: Path) -> None:
    diagnosis = judged(tmp_path, "iter 5: loss 3.2\n" + CANCELLED)
    assert diagnosis.outcome == "unknown"
    assert [(one.id, one.severity) for one in diagnosis.findings] == [("slurm_cancelled", "info")]


def test_state_of_the_scheduler_without_a_line(tmp_path: Path) -> None:
    end = JobEnd(state="OUT_OF_MEMORY", problem="out of memory")
    assert root(judged(tmp_path, "iter 5: loss 3.2\n", end=end)).id == "slurm_host_oom"
    hang = judged(tmp_path, WATCHDOG.format(rank=0), end=JobEnd(state="TIMEOUT"))
    assert root(hang).id == "nccl_watchdog_timeout"


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
    culprit = Culprit(rank=1, host="n1", exit_code=4, said_by="status.json")
    diagnosis = judged(
        tmp_path,
        rank_0="fine\n",
        rank_1="\n".join(f"line {number}" for number in range(20)) + "\rbar 9\n\n",
        end=JobEnd(state="FAILED", exit_code=4, problem="rank 1: 4", first_failure=culprit),
    )
    found = root(diagnosis)
    assert (found.id, found.title) == (
        "unknown_failure",
        "It failed (rank 1: 4), and no line that is known says why",
    )
    assert [(one.source, one.line, one.text) for one in diagnosis.last_words[-2:]] == [
        ("rank-1.out", 19, "line 18"),
        ("rank-1.out", 20, "bar 9"),
    ]
    assert len(diagnosis.last_words) == 8


def test_failed_run_without_any_log(tmp_path: Path) -> None:
    diagnosis, _ = diagnose_logs([], [], JobEnd(state="FAILED", problem="nothing was written"))
    assert root(diagnosis).id == "unknown_failure"


def test_many_copies_are_one_finding(tmp_path: Path) -> None:
    text = "".join(trace("ValueError: x", f"[rank{rank}]: ") for rank in range(40))
    (found,) = judged(tmp_path, text).findings
    assert (found.count, len(found.evidence)) == (40, 5)


def test_same_logs_same_diagnosis(tmp_path: Path) -> None:
    texts = trace("ValueError: x", "[rank1]: ") + box(1), EXIT_1 + LIMIT
    assert judged(tmp_path, *texts) == judged(tmp_path, *texts)


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
