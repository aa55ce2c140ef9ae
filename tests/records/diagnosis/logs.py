"""Lines of jobs that ended in one way or another, and what is said of them."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.diagnosis import Diagnosis, JobEnd, LogFinding
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


def root(diagnosis: Diagnosis) -> LogFinding:
    assert diagnosis.outcome == "failed"
    assert diagnosis.root is not None
    assert diagnosis.findings[0] is diagnosis.root
    return diagnosis.root


def roles(diagnosis: Diagnosis) -> dict[str, str]:
    return {finding.id: finding.role for finding in diagnosis.findings}
