"""Exceptions that another process hands on, and lines that tell a failure without a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.records.diagnosis.logs import EXIT_1, GPU_OOM, HOST_OOM, judged, root, trace

AGAIN = (
    "RuntimeError: Caught RuntimeError in replica 0 on device 0.\nOriginal {trace}",
    "FileNotFoundError: Caught FileNotFoundError in DataLoader worker process 0.\nOriginal {trace}",
    "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the "
    "following error:\n{trace}",
    "Exception: \n\n-- Process 0 terminated with the following error:\n{trace}",
    "jax._src.traceback_util.UnfilteredStackTrace: X: y\n\nThe above exception was the direct "
    "cause of the following exception:\n\n{trace}",
)


@pytest.mark.parametrize("shape", AGAIN)
@pytest.mark.parametrize(
    ("error", "name"),
    [
        ("RuntimeError: shapes cannot be multiplied", "python_exception"),
        ("torch.distributed.DistStoreError: socket closed", "c10d_connect_timeout"),
    ],
)
def test_what_is_raised_again_is_no_root(tmp_path: Path, shape: str, error: str, name: str) -> None:
    inner = trace(error).rstrip()
    outer, _, rest = shape.partition("\n")
    text = trace(outer) + rest.format(trace=inner) + "\n"
    found = root(judged(tmp_path, text))
    assert (found.id, found.evidence[0].text) == (name, error)


def test_what_is_raised_again_is_the_root_where_the_cause_is_not_told(tmp_path: Path) -> None:
    text = trace("RuntimeError: Caught RuntimeError in replica 0 on device 0.")
    assert "Caught RuntimeError" in root(judged(tmp_path, text + EXIT_1)).title


def test_a_traceback_that_ray_hands_on(tmp_path: Path) -> None:
    outer = "ray.exceptions.RayTaskError(KeyError): ray::A.f() (pid=3, ip=10.0.0.1)"
    text = trace(outer) + "  File \"/work/a.py\", line 3, in f\n    x\nKeyError: 'a'\n"
    at = "(TaskRunner pid=892962, ip=10.0.0.1) "
    told = "".join(at + line for line in text.splitlines(keepends=True))
    for said in (text, told):
        found = root(judged(tmp_path, said))
        assert (found.title, found.evidence[0].raised_at) == ("KeyError: 'a'", "/work/a.py:3")


def test_the_chain_of_a_cause_begins_with_the_root(tmp_path: Path) -> None:
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = root(judged(tmp_path, trace("KeyError: 'a'") + link + trace("ValueError: no a")))
    assert found.title == "KeyError: 'a'"


def test_who_missed_a_killed_worker_spoke_before_slurm_did(tmp_path: Path) -> None:
    found = judged(tmp_path, trace("RuntimeError: a background worker is missing") + HOST_OOM)
    assert root(found).id == "slurm_host_oom"
    assert root(judged(tmp_path, trace(GPU_OOM) + HOST_OOM)).id == "cuda_oom"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("n1: Test NCCL failure common.cu:777 'unhandled system error'", "nccl_tests_failure"),
        ("NCCL failure all_reduce.cu:95 'unhandled cuda error'", "nccl_tests_failure"),
        ("Test CUDA failure common.cu:730 'unknown error'", "nccl_tests_cuda_failure"),
        ("Test CUDA failure a.cu:941 'system not yet initialized'", "cuda_fabric_not_ready"),
        ("RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting", "framework_oom"),
        ("Resource exhausted: Failed to allocate request for 32.00MiB", "framework_oom"),
        ("E DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: sync0. Timed", "jax_barrier_timeout"),
        ("E Barrier timed out. Id: [Init]Wait_for_all_tasks::0.", "jax_connect_timeout"),
        ("Torch not compiled with CUDA enabled", "torch_without_cuda"),
        ("OMP: System error #13: shm_open: Permission denied", "shared_memory_denied"),
        ("shm_open(file_name=/ucx_1 flags=0x0) failed: Permission denied", "shared_memory_denied"),
        ("RuntimeError: connect() timed out. Original timeout was 5 ms.", "c10d_connect_timeout"),
    ],
)
def test_lines_without_a_traceback(tmp_path: Path, line: str, name: str) -> None:
    assert root(judged(tmp_path, f"hello\n{line}\n")).id == name


def test_the_warning_of_nccl_says_more_than_its_test(tmp_path: Path) -> None:
    warning = "n1:8:9 [0] enqueue.cc:47 NCCL WARN Cuda failure 'named symbol not found'\n"
    test = "n1: Test NCCL failure common.cu:954 'unhandled cuda error'\n"
    assert root(judged(tmp_path, warning + test)).id == "nccl_cuda_failure"
