"""Signatures of what sits on top of a GPU's driver: cuBLAS, cuDNN, NVML, HSA."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_DRAIN = "Drain the node, report it, start again without it (`--exclude=NODE`)."

GPU_LIBRARIES = (
    Signature(
        id="cublas_failed",
        group="cuda",
        severity="fatal",
        literals=(b"CUBLAS_STATUS_",),
        pattern=re.compile(r"CUDA error: CUBLAS_STATUS_(?P<status>NOT_INITIALIZED|ALLOC_FAILED)"),
        title="cuBLAS{of_rank} could not start (CUBLAS_STATUS_{status})",
        cause="Mostly the GPU has no memory left for its workspace; else an index out of range in"
        " an earlier kernel.",
        advice="Smaller batch; see `nvidia-smi`; CUDA_LAUNCH_BLOCKING=1 shows an earlier fault.",
        example="RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling"
        " `cublasCreate(handle)`",
        sources=("https://docs.nvidia.com/cuda/cublas/",),
    ),
    Signature(
        id="cudnn_failed",
        group="cuda",
        severity="fatal",
        literals=(b"CUDNN_STATUS_",),
        pattern=re.compile(r"cuDNN error: CUDNN_STATUS_(?P<status>\w{1,60})"),
        title="cuDNN{of_rank} failed (CUDNN_STATUS_{status})",
        cause="No memory left on the GPU, or a cuDNN that does not fit PyTorch or the driver.",
        advice="Smaller batch; take other versions of cuDNN out of LD_LIBRARY_PATH;"
        " `python -m torch.utils.collect_env`.",
        example="RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
        sources=("https://docs.nvidia.com/deeplearning/cudnn/",),
    ),
    Signature(
        id="torch_without_cuda",
        group="cuda",
        severity="fatal",
        literals=(b"Torch not compiled with CUDA enabled",),
        pattern=re.compile(r"Torch not compiled with CUDA enabled"),
        title="PyTorch was installed without CUDA",
        cause="The wheel or package of PyTorch is the one for processors only.",
        advice="`python -c 'import torch; print(torch.version.cuda)'` prints None: install the"
        " build for your CUDA; see which environment the job activates.",
        example="AssertionError: Torch not compiled with CUDA enabled",
        sources=("https://pytorch.org/get-started/locally/",),
    ),
    Signature(
        id="nvml_version_mismatch",
        group="cuda",
        severity="fatal",
        literals=(b"Driver/library version mismatch",),
        pattern=re.compile(r"Driver/library version mismatch"),
        title="The node's NVIDIA driver was updated without a reboot",
        cause="The module in the kernel and the libraries beside it have different versions.",
        advice=f"{_DRAIN} The site reboots it or loads the module again.",
        example="Failed to initialize NVML: Driver/library version mismatch",
    ),
    Signature(
        id="nvml_not_initialized",
        group="cuda",
        severity="warning",
        literals=(b"Failed to initialize NVML: ",),
        pattern=re.compile(r"Failed to initialize NVML: (?P<reason>[^\n]{1,80})"),
        title="nvidia-smi does not work on the node: {reason}",
        cause="The container lost its devices, the driver is not loaded, or a GPU is ill.",
        advice="Run `nvidia-smi` on the node outside of the container.",
        example="Failed to initialize NVML: Unknown Error",
    ),
    Signature(
        id="miopen_failed",
        group="cuda",
        severity="fatal",
        literals=(b"RuntimeError: miopenStatus",),
        pattern=re.compile(r"RuntimeError: miopenStatus(?P<status>\w{1,40})"),
        title="MIOpen{of_rank} failed (miopenStatus{status})",
        cause="Mostly its database of kernels, in the home folder, was locked or could not be read"
        " by many ranks at once.",
        advice="MIOPEN_USER_DB_PATH and MIOPEN_CUSTOM_CACHE_DIR on a local disk, one for each rank"
        " (`/tmp/$USER-miopen-$SLURM_LOCALID`).",
        example="RuntimeError: miopenStatusInternalError",
        sources=("https://rocm.docs.amd.com/projects/MIOpen/en/latest/conceptual/cache.html",),
    ),
    Signature(
        id="miopen_database",
        group="cuda",
        severity="warning",
        literals=(b"accessing SQLite database", b"open memvfs: "),
        pattern=re.compile(r"sqlite_db\.cpp:\d{1,6}: (?P<text>[^\n]{1,160})"),
        title="MIOpen cannot use its database of kernels: {text}",
        cause="It lies in the home folder, where locks of many ranks do not work.",
        advice="MIOPEN_USER_DB_PATH and MIOPEN_CUSTOM_CACHE_DIR on a local disk, one per rank.",
        example="MIOpen(HIP): Warning [Find] /src/sqlite_db.cpp:212: Internal error while accessing"
        " SQLite database: disk I/O error",
        sources=("https://rocm.docs.amd.com/projects/MIOpen/en/latest/conceptual/cache.html",),
    ),
    Signature(
        id="hsa_error",
        group="cuda",
        severity="fatal",
        literals=(b"HSA_STATUS_ERROR_",),
        pattern=re.compile(r"HSA_STATUS_ERROR_(?P<status>\w{1,60})"),
        title="A kernel on an AMD GPU{of_rank} was stopped (HSA_STATUS_ERROR_{status})",
        cause="A wrong address or no memory in a kernel (0x1016, MEMORY_APERTURE_VIOLATION,"
        " OUT_OF_RESOURCES), a library that does not fit the driver, or an ill GPU.",
        advice="AMD_SERIALIZE_KERNEL=3 shows which kernel; dmesg (amdgpu); another node.",
        example="Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL"
        " operation resulted in a hardware exception. code: 0x1016",
        sources=("https://rocm.docs.amd.com/",),
    ),
)
