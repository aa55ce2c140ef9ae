"""BackendRule: which backend of torch.distributed a device and a network need, and why."""

from collections.abc import Mapping
from typing import Literal

from hpc_train.model.value import Value

Device = Literal["NVIDIA GPU", "AMD GPU", "Intel GPU", "CPU"]
NetworkKind = Literal["InfiniBand", "Ethernet", "any"]
_FALLBACK = "gloo is slower on GPUs, and has no send, recv and barrier there"


class BackendRule(Value, frozen=True, kw_only=True):
    """The backend of a device and a network; `otherwise` where that one cannot be used."""

    device: Device
    network: NetworkKind
    backend: str
    otherwise: str = ""
    reason: str


RULES = (
    BackendRule(
        device="NVIDIA GPU",
        network="InfiniBand",
        backend="nccl",
        reason="the only backend with direct access to InfiniBand and to the memory of GPUs",
    ),
    BackendRule(
        device="NVIDIA GPU",
        network="Ethernet",
        backend="nccl",
        otherwise="gloo",
        reason=f"direct between the GPUs of a node, by sockets between nodes; {_FALLBACK}",
    ),
    BackendRule(
        device="AMD GPU",
        network="any",
        backend="nccl",
        otherwise="gloo",
        reason=f"in a torch for ROCm, this name is RCCL; {_FALLBACK}",
    ),
    BackendRule(
        device="Intel GPU",
        network="any",
        backend="xccl",
        reason="the backend of a torch for XPU",
    ),
    BackendRule(
        device="CPU",
        network="InfiniBand",
        backend="gloo",
        otherwise="mpi",
        reason="gloo needs IP over InfiniBand; where there is none, mpi uses InfiniBand itself",
    ),
    BackendRule(
        device="CPU",
        network="Ethernet",
        backend="gloo",
        otherwise="mpi",
        reason="every torch for Linux has gloo; mpi needs a torch that was built with an MPI",
    ),
)
# Backend and device -> whether it carries each operation; `MPI`: if the MPI of the build does.
CARRIERS = ("gloo, CPU", "gloo, GPU", "mpi, CPU", "mpi, GPU", "nccl, GPU", "xccl, GPU")
OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "all_reduce, all_gather, all_to_all, broadcast": ("yes", "yes", "yes", "MPI", "yes", "yes"),
    "reduce_scatter: fsdp, hsdp": ("yes", "yes", "no", "no", "yes", "yes"),
    "send, recv: pipeline": ("yes", "no", "yes", "MPI", "yes", "yes"),
    "barrier": ("yes", "no", "yes", "MPI", "yes", "yes"),
}
# Backend -> where to get a torch that has it.
BUILDS: Mapping[str, str] = {
    "gloo": "every torch for Linux",
    "nccl": "a torch for CUDA, or for ROCm (RCCL)",
    "xccl": "a torch for XPU",
    "mpi": "a torch that is built from source beside an MPI; published packages have none",
    "ucc": "a torch that is built from source with UCX and UCC",
}
