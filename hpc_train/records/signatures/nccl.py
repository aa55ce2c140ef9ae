"""Signatures of NCCL and RCCL that end a job: setup, versions, devices, memory."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_NCCL = ("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",)
_ENV = ("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",)

NCCL = (
    Signature(
        id="nccl_duplicate_gpu",
        group="nccl",
        severity="fatal",
        literals=(b"Duplicate GPU detected",),
        pattern=re.compile(
            r"Duplicate GPU detected ?: rank (?P<first>\d{1,7}) and rank "
            r"(?P<second>\d{1,7}) both on (?:CUDA|HIP)? ?device (?P<device>\w{1,16})"
        ),
        title="Ranks {first} and {second} both use GPU {device}",
        cause="CUDA_VISIBLE_DEVICES got lost, LOCAL_RANK is not used, or too many tasks share a"
        " node.",
        advice="torch.cuda.set_device(LOCAL_RANK) before anything else; --ntasks-per-node = GPUs"
        " per node; see what CUDA_VISIBLE_DEVICES is in each task.",
        example="n1:811:902 [0] init.cc:880 NCCL WARN Duplicate GPU detected : rank 1 and rank 0"
        " both on CUDA device 7000",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_shared_memory",
        group="nccl",
        severity="fatal",
        literals=(b"/dev/shm/nccl-", b"Call to posix_fallocate failed"),
        pattern=re.compile(
            r"(?:creating shared memory segment|to extend) (?P<file>/dev/shm/nccl-\w{1,40})"
            r"|Call to posix_fallocate failed"
        ),
        title="NCCL has no room in /dev/shm",
        cause="The node's /dev/shm is small (containers: 64 MB), or old nccl-* files fill it.",
        advice="--shm-size=16g or --ipc=host; remove old /dev/shm/nccl-* files.",
        example="n1:811:902 [0] shmutils.cc:72 NCCL WARN Error while creating shared memory segment"
        " /dev/shm/nccl-Ab12 (size 9637888)",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_version_mismatch",
        group="nccl",
        severity="fatal",
        literals=(b"Mismatched NCCL version", b"NCCL version mismatch"),
        pattern=re.compile(
            r"Mismatched NCCL version detected ?: rank (?P<first>\d{1,7}) version (?P<one>\d{1,6})"
            r" rank (?P<second>\d{1,7}) version (?P<other>\d{1,6})|NCCL version mismatch"
        ),
        title="The ranks run different versions of NCCL",
        cause="Another image, environment or LD_LIBRARY_PATH on some nodes.",
        advice="The same image on all nodes; NCCL_DEBUG=VERSION shows each one's.",
        example="n1:811:902 [0] init.cc:600 NCCL WARN Mismatched NCCL version detected : rank 0"
        " version 22105 rank 8 version 22005",
    ),
    Signature(
        id="nccl_no_algorithm",
        group="nccl",
        severity="fatal",
        literals=(b"no algorithm/protocol available",),
        pattern=re.compile(
            r"no algorithm/protocol available for function (?P<function>\w{1,40})"
            r"(?: with datatype (?P<type>\w{1,40}))?"
        ),
        title="NCCL may use no algorithm for {function}",
        cause="NCCL_ALGO or NCCL_PROTO forbid all that could do it.",
        advice="Unset NCCL_ALGO and NCCL_PROTO.",
        example="n1:811:902 [0] enqueue.cc:1800 NCCL WARN Error : no algorithm/protocol available"
        " for function AllGather with datatype ncclBfloat16. NCCL_ALGO was set to tree.",
        sources=_ENV,
    ),
    Signature(
        id="nccl_cuda_failure",
        group="nccl",
        severity="fatal",
        literals=(b"Cuda failure ", b"HIP failure "),
        pattern=re.compile(
            r"(?:Cuda|HIP) failure (?:(?P<code>\d{1,5}) )?'(?P<text>[^'\n]{1,120})'"
        ),
        title="A call of CUDA failed inside NCCL: {text}",
        cause="`out of memory` means no room for NCCL's buffers; another text is an earlier"
        " error of the GPU.",
        advice="Leave 1-2 GiB of the GPU free; else look for the first CUDA error and for an Xid.",
        example="n1:811:902 [0] enqueue.cc:1400 NCCL WARN Cuda failure 2 'out of memory'",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_error",
        group="nccl",
        severity="fatal",
        literals=(b"NCCL error in: ", b"NCCL Error "),
        pattern=re.compile(
            r"NCCL error in: (?P<place>\S{1,200}?:\d{1,6}), (?P<text>[^\n(]{1,120})"
            r"|NCCL Error (?P<code>\d{1,2}): (?P<reason>[^\n]{1,120})"
        ),
        title="A call of NCCL{of_rank} failed",
        cause="The line after `Last error:`, or the last NCCL WARN, tells what.",
        advice="Read that line; run again with NCCL_DEBUG=WARN if there is none.",
        example="torch.distributed.DistBackendError: NCCL error in: ../NCCLUtils.cpp:77, unhandled"
        " system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_last_error",
        group="nccl",
        severity="fatal",
        literals=(b"Last error:",),
        pattern=re.compile(r"^(?P<text>\S[^\n]{0,300})"),
        title="NCCL{of_rank} says: {text}",
        cause="What NCCL met last before it gave up.",
        advice="Look for the same line of other ranks, and which rank was first.",
        example="Last error:\nnet.cc:120 something that nobody has met before",
        sources=_NCCL,
    ),
)
