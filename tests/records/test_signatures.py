"""The catalogue of failures keeps its promises."""

from __future__ import annotations

import io
import re
import time

import pytest

from hpc_train.records.line_dispatch import dispatch
from hpc_train.records.signature_matcher import SymptomReader
from hpc_train.records.signatures.base import Signature
from hpc_train.records.signatures.catalogue import packaged
from hpc_train.records.signatures.explain import explain
from tests.records.sighted import ids, sighted

SIGNATURES = packaged()
BY_ID = {signature.id: signature for signature in SIGNATURES}
EXPECTED = {
    "cuda_oom",
    "nccl_watchdog_timeout",
    "python_exception",
    "pyxis_invalid_mount",
    "openmpi_direct_launch_without_pmi",
    "slurm_step_too_many_cpus",
}
NOISE = """\
iter 100: loss 3.2847, time 135.21ms, mfu 38.04%
possible_oom: false
{'loss': 2.31, 'learning_rate': 5e-05, 'epoch': 0.4}
Epoch: 3
Error rate: 0.031
val_error 0.12 top5_err 3.4
n1:811:902 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC
n1:811:902 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.
n1:811:902 [0] NCCL INFO TUNER/Plugin: Failed to find ncclTunerPlugin_v4 symbol.
n1:811:902 [0] NCCL INFO comm 0x55d0 rank 0 nranks 8 cudaDev 0 busId 7000 - Abort COMPLETE
n1:811:902 [0] NCCL INFO [Service thread] Connection closed by localRank 0
[rank0]:W0131 12:00:00.123000 99 torch/distributed/run.py:792] Setting OMP_NUM_THREADS to be 1
WARNING:torch.distributed.run:
UserWarning: TorchScript will treat type annotations of Tensor as normal
  warnings.warn("deprecated")
2025-01-31 12:00:00,123 - root - WARNING - Warmup steps (600) exceed total steps (10).
[titan] 2025-01-31 12:00:00,123 - root - INFO - Training completed
+ echo 'RuntimeError: CUDA error: out of memory'
:::MLLOG {"key": "run_stop", "value": null, "metadata": {"status": "success"}}
slurmstepd: info: Setting TMPDIR
the job was killed before; retries 3, errors 0
# Out of bounds values : 0 OK
Early stopping: loss is 0.3, stopping training at epoch 4
srun: Job 71 step creation temporarily disabled, retrying (Requested nodes are busy)
INFO:    Setting --writable-tmpfs (required by nvidia-container-cli)
pyxis: importing docker image: a/b
[3]<stdout>: jobs Killed: 0, Aborted: 0, Bus error: 0
exits with return code = unknown; what(): nothing
2025-01-31 12:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:142] oneDNN is on
"""


def test_the_catalogue_is_whole() -> None:
    names = [signature.id for signature in SIGNATURES]
    assert len(names) == len(set(names))
    assert len(names) >= 90
    assert set(names) >= EXPECTED


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.id)
def test_an_example_is_seen_as_what_it_is(signature: Signature) -> None:
    seen = sighted(signature.example)
    assert [one.signature for one in seen] == [signature.id]
    told = explain(signature, seen[0])
    for text in (told.title, told.cause, told.advice):
        assert text
        assert not re.search(r"[{}?]", text)
        assert len(text) <= 400


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.id)
def test_literals_are_rare_and_on_one_line(signature: Signature) -> None:
    for literal in signature.literals:
        assert len(literal) >= 4
        assert not set("\r\n") & set(literal)


def test_titles_name_what_patterns_find() -> None:
    composed = {"rank", "of_rank", "node", "file", "line", "these_tasks"}
    for signature in SIGNATURES:
        named = set(re.findall(r"\{(\w+)\}", signature.title + signature.cause + signature.advice))
        assert named <= composed | set(signature.compiled.groupindex), signature.id


def test_ordinary_lines_are_nothing() -> None:
    assert ids(NOISE) == []


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.id)
def test_hostile_lines_take_no_time(signature: Signature) -> None:
    example = signature.example.splitlines()[-1]
    for token in {*example.split(), *signature.literals, "1", "(", " "}:
        for text in (
            f"{token} " * (64_000 // len(token)),
            example[: len(example) // 2] + token * 3200,
        ):
            started = time.process_time()
            signature.compiled.search(text)
            # Where time grows with the square of the length, it is minutes.
            assert time.process_time() - started < 10


def test_what_is_no_text_is_no_trouble() -> None:
    for signature in SIGNATURES:
        raw = signature.example.encode()
        for cut in range(0, len(raw), 7):
            sighted(raw[:cut] + b"\xff\x00\x1b[31m" + raw[cut:])


def test_of_very_many_only_some_are_kept() -> None:
    reader = SymptomReader("log")
    log = io.BytesIO(b"srun: error: n1: task 0: Exited with exit code 1\n" * 1000)
    kept = sum(len(reader.read(line)) for line, _ in dispatch(log, [reader]))
    assert kept == 200
    assert reader.counts["exit_error"] == 1000


def test_what_is_only_counted_still_ends_a_traceback() -> None:
    error = "RuntimeError: NCCL error in: Work.cpp:5, system error\n"
    frame = 'Traceback (most recent call last):\n  File "/a.py", line 3, in f\n    f()\n'
    reader = SymptomReader("log")
    log = io.BytesIO((error * 300 + (frame + error) * 2 + error + "KeyError: 3\n").encode())
    for line, _ in dispatch(log, [reader]):
        reader.read(line)
    assert reader.counts == {"nccl_error": 303}
    assert not reader.wants_next


def test_what_follows_a_last_error_is_another_matter_alone() -> None:
    both = "torch.distributed.DistBackendError: NCCL error in: Work.cpp:5\nLast error:\nKilled: x\n"
    reader = SymptomReader("log")
    for line, _ in dispatch(io.BytesIO((both * 300 + "Killed: x\n" * 9).encode()), [reader]):
        reader.read(line)
    assert reader.counts["nccl_last_error"] == 300


def test_a_part_of_a_box_is_not_the_box() -> None:
    entry = (
        "  time      : 2026-01-05_10:11:12\n  rank      : 3 (local_rank: 3)\n"
        "  exitcode  : 1 (pid: 99)\n  traceback : To enable traceback see: x\n"
    )
    reader = SymptomReader("log")
    log = entry * 250 + entry.splitlines(keepends=True)[-1] * 5
    for line, _ in dispatch(io.BytesIO(log.encode()), [reader]):
        reader.read(line)
    assert reader.counts == {"torchrun_child_failed_rank": 250}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED DUE TO TIME LIMIT ***", "slurm_time_limit"),
        ("9/50 [1:34:30<7:10:59]slurmstepd: error: *** JOB 7 CANCELLED ***", "slurm_cancelled"),
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in step 71.batch cgroup.",
            "slurm_host_oom",
        ),
        ("srun: error: n1: task 0: Out Of Memory", "slurm_host_oom"),
        ("slurm_script: line 28:  8156 Killed                  python3 main.py", "exit_killed"),
        ("srun: error: n1: tasks 0,3-5: Exited with exit code 143", "exit_terminated"),
        (
            "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE,"
            " TensorShape=[1], Timeout(ms)=1800000) ran for 1806986 milliseconds",
            "nccl_watchdog_timeout",
        ),
        (
            "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALL",
            "nccl_watchdog_timeout",
        ),
        (
            "[rank1]:[E131 12:00:00.1 x.cpp:9] [PG 0 Rank 1] Process group watchdog thread"
            " terminated with exception: CUDA error: uncorrectable ECC error encountered",
            "cuda_ecc_error",
        ),
        (
            "n1:8:9 [0] net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with"
            " status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) len=0 vendor err 129",
            "nccl_retry_exceeded",
        ),
        ("NCCL WARN NET/IB : Got completion with error 5, opcode 0", "nccl_completion_error"),
        (
            "[2026-02-25 16:41:56] n3:2:2 [3] os/linux.cc:200 NCCL WARN ncclOsSocketPollConnect:"
            " connect to 10.8.1.2<37857> returned Connection refused, exceeded error retry count",
            "nccl_cannot_connect",
        ),
        ("W1 api.py:719] Received Signals.SIGTERM death signal, shutting", "torchrun_told_to_stop"),
        (
            "[W socket.cpp:601] [c10d] The client socket has failed to connect to [n1]:29500"
            " (errno: 99 - Cannot assign requested address).",
            "c10d_connect_retry",
        ),
        ("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained", "xid_contained_ecc"),
        ("NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", "xid_fallen_off_the_bus"),
        ("ImportError: libtorch_cuda.so: undefined symbol: ncclMemFree", "nccl_undefined_symbol"),
        (
            "RuntimeError: DataLoader worker (pid 1) is killed by signal: Bus error. It is possible"
            " that dataloader's workers are out of shared memory.",
            "dataloader_worker_killed",
        ),
        (
            "n1:8:9 [0] shm.cc:1 NCCL WARN Error while creating shared memory segment"
            " /dev/shm/nccl-a1 (size 9), error: No space left on device (28)",
            "nccl_shared_memory",
        ),
    ],
)
def test_what_logs_of_other_versions_say(line: str, name: str) -> None:
    assert ids(line) == [name]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("task 0", "Task 0 on n1 ended with exit code 1"),
        ("tasks 0-3,7", "Tasks 0-3,7 on n1 ended with exit code 1"),
    ],
)
def test_one_task_is_no_plural(said: str, title: str) -> None:
    (seen,) = sighted(f"srun: error: n1: {said}: Exited with exit code 1")
    assert explain(BY_ID[seen.signature], seen).title == title
