"""Signatures of CUDA and HIP: memory of the GPU, errors of kernels, driver and devices."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature
from hpc_train.records.signatures.oom import OUT_OF_MEMORY

_ERROR = r"(?:CUDA|HIP|Cuda|NVML|cuda|hip) ?(?:runtime )?(?:[Ee]rror|failure)\b.{0,60}?"
_DOCS = ("https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html",)
_BLOCKING = "CUDA_LAUNCH_BLOCKING=1 names the call that failed"


def _error(text: str) -> re.Pattern[str]:
    return re.compile(_ERROR + f"(?:{text})")


CUDA = (
    Signature(
        id="cuda_oom",
        group="cuda",
        severity="fatal",
        literals=(b"CUDA out of memory. Tried", b"HIP out of memory. Tried"),
        pattern=OUT_OF_MEMORY,
        title="A GPU{of_rank} ran out of memory when {tried} more were asked for",
        cause="The model, its optimiser state and its activations need more than the GPU has.",
        advice="Smaller micro-batch, activation checkpointing, more sharding (FSDP, ZeRO, tensor"
        " parallel); `torch.cuda.memory._record_memory_history()` shows who holds it.",
        example="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has"
        " a total capacity of 79.15 GiB of which 1.00 GiB is free. Including non-PyTorch memory,"
        " this process has 78.10 GiB memory in use. Of the allocated memory 76.00 GiB is allocated"
        " by PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated.",
        sources=("https://pytorch.org/docs/stable/notes/cuda.html#memory-management",),
    ),
    Signature(
        id="cuda_oom_outside_pytorch",
        group="cuda",
        severity="fatal",
        literals=(
            b"error: out of memory",
            b"hipErrorOutOfMemory",
            b"cudaErrorMemoryAllocation",
            b"CUDA_ERROR_OUT_OF_MEMORY",
            b"cudaMalloc retry failed",
        ),
        pattern=re.compile(
            r"(?:CUDA|HIP) (?:runtime )?error: out of memory|hipErrorOutOfMemory"
            r"|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|cudaMalloc retry failed"
        ),
        title="A GPU had no memory left for something other than a tensor",
        cause="Another process fills the GPU, or several ranks use the same one.",
        advice="See `nvidia-smi` on the node; give each rank its own GPU (LOCAL_RANK,"
        " --gpus-per-task) and ask for whole GPUs.",
        example="RuntimeError: CUDA error: out of memory",
        sources=_DOCS,
    ),
    Signature(
        id="framework_oom",
        group="cuda",
        severity="fatal",
        literals=(
            b"OOM when allocating tensor",
            b"RESOURCE_EXHAUSTED: ",
            b"Resource exhausted: ",
        ),
        pattern=re.compile(
            r"OOM when allocating tensor with shape ?\[(?P<shape>[\d,]{0,80})\]"
            r"|(?:RESOURCE_EXHAUSTED|Resource exhausted): (?:Out of memory|Error allocating device"
            r" buffer|Failed to allocate request|Attempting to reserve|Ran out of memory)"
        ),
        title="TensorFlow or JAX found no room on the GPU or TPU",
        cause="The program needs more memory than the device has, or a second process took it.",
        advice="Smaller batch; one process per GPU; XLA_PYTHON_CLIENT_PREALLOCATE=false or"
        " TF_FORCE_GPU_ALLOW_GROWTH=true where a GPU is shared.",
        example="OOM when allocating tensor with shape[256,1024] and type float on /device:GPU:0",
    ),
    Signature(
        id="cuda_ecc_error",
        group="cuda",
        severity="fatal",
        literals=(b"uncorrectable ECC error",),
        pattern=re.compile(r"uncorrectable ECC error(?: encountered)?"),
        title="A GPU{of_rank} has an uncorrectable memory error (ECC)",
        cause="Memory of the GPU is broken.",
        advice="Drain the node, report it, start again without it (`--exclude=NODE`).",
        example="RuntimeError: CUDA error: uncorrectable ECC error encountered",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_illegal_memory_access",
        group="cuda",
        severity="fatal",
        literals=(b"illegal memory access", b"Memory access fault by GPU"),
        pattern=re.compile(
            r"an illegal memory access was encountered|Memory access fault by GPU node-\d{1,3}"
        ),
        title="A kernel{of_rank} read or wrote memory that is not its own",
        cause="An index out of range, a wrong extension, or a failing GPU.",
        advice=f"Look at dmesg for Xid 13 or 31; {_BLOCKING}; try another node.",
        example="RuntimeError: CUDA error: an illegal memory access was encountered",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_device_assert",
        group="cuda",
        severity="fatal",
        literals=(b"device-side assert triggered", b"], thread: ["),
        pattern=re.compile(
            r"device-side assert triggered|block: \[[\d,]{1,30}\], thread: \[[\d,]{1,30}\] Assert"
        ),
        title="A check inside a kernel{of_rank} failed",
        cause="Mostly a label or a token id that is larger than the table that it indexes.",
        advice=f"Check labels and vocabulary; {_BLOCKING}.",
        example="RuntimeError: CUDA error: device-side assert triggered",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_launch_failure",
        group="cuda",
        severity="fatal",
        literals=(b"unspecified launch failure",),
        pattern=re.compile(r"unspecified launch failure"),
        title="A kernel{of_rank} died on the GPU",
        cause="A wrong address in a kernel, or a failing GPU.",
        advice=f"Look at dmesg for an Xid; {_BLOCKING}; try another node.",
        example="RuntimeError: CUDA error: unspecified launch failure",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_device_busy",
        group="cuda",
        severity="fatal",
        literals=(b"busy or unavailable",),
        pattern=re.compile(r"CUDA-capable device\(s\) is/are busy or unavailable"),
        title="A GPU{of_rank} is taken by another process",
        cause="Exclusive compute mode with two ranks on one GPU, or a process left over.",
        advice="One rank per GPU (LOCAL_RANK, --gpus-per-task); look for old processes with"
        " `nvidia-smi`; ask the site about the compute mode.",
        example="RuntimeError: CUDA error: all CUDA-capable device(s) is/are busy or unavailable",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_no_kernel_image",
        group="cuda",
        severity="fatal",
        literals=(b"no kernel image is available",),
        pattern=re.compile(r"no kernel image is available"),
        title="The program was not built for this kind of GPU",
        cause="PyTorch or an extension lacks code for the architecture of the GPU.",
        advice="A newer build of PyTorch; rebuild extensions with TORCH_CUDA_ARCH_LIST of this"
        " GPU.",
        example="RuntimeError: CUDA error: no kernel image is available for execution on the"
        " device",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_driver_too_old",
        group="cuda",
        severity="fatal",
        literals=(b"driver version is insufficient", b"NVIDIA driver on your system is too old"),
        pattern=re.compile(
            r"driver version is insufficient for CUDA runtime"
            r"|NVIDIA driver on your system is too old"
        ),
        title="The NVIDIA driver of the node is older than the CUDA of the program",
        cause="PyTorch or the container needs a newer driver.",
        advice="A build for an older CUDA, or the compat libraries (cuda-compat) in the container.",
        example="RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime"
        " version",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_fabric_not_ready",
        group="cuda",
        severity="fatal",
        literals=(b"system not yet initialized", b"CUDA_ERROR_SYSTEM_NOT_READY"),
        pattern=re.compile(r"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY"),
        title="The NVSwitch fabric of the node is not up (CUDA error 802)",
        cause="The fabric manager does not run, or its version is not that of the driver.",
        advice="Drain the node; the site checks `systemctl status nvidia-fabricmanager`.",
        example="RuntimeError: CUDA error: system not yet initialized",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_invalid_device_ordinal",
        group="cuda",
        severity="fatal",
        literals=(b"invalid device ordinal",),
        pattern=re.compile(r"invalid device ordinal"),
        title="A process{of_rank} asked for a GPU that it cannot see",
        cause="LOCAL_RANK counts further than the visible GPUs: --gpus-per-task or"
        " --gpu-bind hides all but one, or too many processes run on the node.",
        advice="Do not bind GPUs to tasks, or use device 0; processes per node = GPUs per node.",
        example="RuntimeError: CUDA error: invalid device ordinal",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_initialization_error",
        group="cuda",
        severity="fatal",
        literals=(b"initialization error", b"Cannot re-initialize CUDA in forked"),
        pattern=re.compile(
            _ERROR + r"initialization error|Cannot re-initialize CUDA in forked subprocess"
        ),
        title="CUDA could not start in a process{of_rank}",
        cause="CUDA was used before a fork, or the driver of the node is ill.",
        advice="Start workers with `spawn`, no CUDA call before; check `nvidia-smi` on the node.",
        example="RuntimeError: CUDA error: initialization error",
        sources=_DOCS,
    ),
    Signature(
        id="cuda_not_found",
        group="cuda",
        severity="fatal",
        literals=(
            b"No CUDA GPUs are available",
            b"no CUDA-capable device is detected",
            b"Found no NVIDIA driver",
        ),
        pattern=re.compile(
            r"No CUDA GPUs are available|no CUDA-capable device is detected|Found no NVIDIA driver"
        ),
        title="A process{of_rank} sees no GPU",
        cause="The job asked for none, CUDA_VISIBLE_DEVICES is empty, or the container has no GPU.",
        advice="--gpus-per-node (or the site's own way); `--nv` of Apptainer; a GPU partition.",
        example="RuntimeError: No CUDA GPUs are available",
    ),
    Signature(
        id="cuda_error_other",
        group="cuda",
        severity="fatal",
        literals=(b"CUDA error: ", b"HIP error: "),
        pattern=re.compile(r"(?P<kind>CUDA|HIP) error: (?P<text>[^\n]{1,160})"),
        title="{kind}{of_rank} failed: {text}",
        cause="An operation on the GPU failed; it may have been started long before this line.",
        advice=f"{_BLOCKING}; look at dmesg for an Xid; try another node.",
        example="RuntimeError: CUDA error: misaligned address",
        sources=_DOCS,
    ),
)
