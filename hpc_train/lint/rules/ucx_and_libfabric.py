"""Rules on UCX, libfabric and Slingshot."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import rank_launches

_OBSOLETE = {
    "RDMAV_FORK_SAFE": "for kernels before 5.13",
    "FI_EFA_FORK_SAFE": "for kernels before 5.13",
    "FI_EFA_USE_DEVICE_RDMA": "for libfabric before 1.18",
    "FI_EFA_SET_CUDA_SYNC_MEMOPS": "for old versions of aws-ofi-nccl",
}


@rule(
    "HT620",
    "info",
    "UCX_TLS=tcp",
    why="MPI then uses TCP only, not InfiniBand.",
    advice="leave UCX_TLS out; UCX selects InfiniBand by default",
)
def ucx_tcp(subject: Subject) -> Iterator[RuleHit]:
    infiniband = subject.context.fabric == "infiniband"
    evidence = infiniband or any(
        found.name.startswith("NCCL_IB_") and found.name != "NCCL_IB_DISABLE"
        for found in subject.script.assignments
    )
    for found in subject.script.settings("UCX_TLS"):
        kinds = set(found.value.split(","))
        if "tcp" in kinds and kinds <= {"tcp", "self", "sm", "cuda", "cuda_copy", "cuda_ipc"}:
            where = " although the nodes have InfiniBand" if evidence else ""
            yield RuleHit(
                line=found.line,
                message=f"UCX_TLS={found.value} selects TCP only{where}",
                severity="warning" if evidence else None,
            )


@rule(
    "HT621",
    "info",
    "UCX_TLS without GPU memory",
    why="A list in UCX_TLS is complete: without cuda (or rocm) MPI cannot send from GPU memory: "
    "such a call fails or crashes.",
    advice="add cuda (or rocm) to the list, or leave UCX_TLS out",
)
def ucx_without_gpu(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    gpus = script.asked.has("gpus-per-node", "gpus", "gpus-per-task") or "gpu" in (
        script.asked.value("gres") or ""
    )
    for found in script.settings("UCX_TLS"):
        value = found.value
        if gpus and found.literal and value not in ("all", "") and not value.startswith("^"):
            if not re.search(r"cuda|rocm|gpu", value):
                yield RuleHit(
                    line=found.line, message=f"UCX_TLS={value} has no transport for GPU memory"
                )


@rule(
    "HT622",
    "warning",
    "GPU-aware MPICH beside NCCL",
    why="With MPICH_GPU_SUPPORT_ENABLED=1, NCCL and MPI both use the GPU, and may deadlock.",
    advice="set it to 0 unless the program sends GPU buffers with MPI",
)
def gpu_aware_mpich(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    nccl = any(found.name.startswith("NCCL_") for found in script.assignments) or any(
        launch.starter == "torchrun" for launch in rank_launches(script)
    )
    for found in script.settings("MPICH_GPU_SUPPORT_ENABLED"):
        if found.value == "1" and nccl:
            yield RuleHit(
                line=found.line, message="MPICH_GPU_SUPPORT_ENABLED=1 in a job that uses NCCL"
            )


@rule(
    "HT623",
    "error",
    "alt_read without disable_rdzv_get",
    why="FI_CXI_RDZV_PROTO=alt_read works only in a job or step that was started with "
    "--network=disable_rdzv_get; otherwise libfabric fails at its start.",
    advice="add #SBATCH --network=disable_rdzv_get, or pass it to srun",
)
def alt_read(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    options = [launch.option("network") for launch in script.launches]
    networks = [script.asked.value("network"), *(option.value for option in options if option)]
    if any("disable_rdzv_get" in (network or "") for network in networks):
        return
    for found in script.settings("FI_CXI_RDZV_PROTO"):
        if found.value == "alt_read":
            message = "FI_CXI_RDZV_PROTO=alt_read without --network=disable_rdzv_get"
            yield RuleHit(line=found.line, message=message)


@rule(
    "HT624",
    "info",
    "workaround that is no longer needed",
    why="It was needed with old kernels or libraries; today it has no effect, or costs speed.",
    advice="leave it out",
)
def obsolete(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.settings(*_OBSOLETE):
        yield RuleHit(line=found.line, message=f"{found.name} is {_OBSOLETE[found.name]}")


@rule(
    "HT625",
    "warning",
    "memhooks with NCCL",
    why="On Slingshot the memhooks monitor of libfabric deadlocks with NCCL and RCCL, which "
    "allocate memory from several threads.",
    advice="write FI_MR_CACHE_MONITOR=userfaultfd, or kdreg2 if the kernel provides it",
)
def memhooks(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.settings("FI_MR_CACHE_MONITOR"):
        if found.value == "memhooks":
            yield RuleHit(
                line=found.line, message="FI_MR_CACHE_MONITOR=memhooks may hang with NCCL"
            )
