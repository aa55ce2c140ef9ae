"""Signatures of nccl-tests: the call that failed, as its macros print it."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_TESTS = ("https://github.com/NVIDIA/nccl-tests",)

NCCL_TESTS = (
    Signature(
        id="nccl_tests_cuda_failure",
        group="cuda",
        severity="fatal",
        literals=(b"Test CUDA failure ", b"Cuda failure "),
        pattern=re.compile(
            r"(?:Test CUDA|Cuda) failure (?P<place>[\w./-]{1,80}:\d{1,6}) '(?P<text>[^'\n]{1,120})'"
        ),
        title="A call of CUDA failed in nccl-tests: {text}",
        cause="A GPU that is taken, ill or not visible, or too little memory for the largest size.",
        advice="`nvidia-smi` on that node; one process for each GPU; a smaller -e.",
        example="n1: Test CUDA failure common.cu:730 'unknown error'",
        sources=_TESTS,
    ),
    Signature(
        id="nccl_tests_failure",
        group="nccl",
        severity="fatal",
        literals=(b"NCCL failure ",),
        pattern=re.compile(
            r"(?:Test )?NCCL failure (?P<place>[\w./-]{1,80}:\d{1,6}) '(?P<text>[^'\n(]{1,120})"
        ),
        title="A call of NCCL failed in nccl-tests: {text}",
        cause="`unhandled system error` is a call of the system (network, shared memory, files);"
        " `unhandled cuda error` one of CUDA; the last NCCL WARN before it tells which.",
        advice="Run it again with NCCL_DEBUG=WARN; in a container with --ipc=host or a larger"
        " /dev/shm; on one node, then on two.",
        example="n1: Test NCCL failure common.cu:777 'unhandled system error'",
        sources=_TESTS,
    ),
)
