"""All signatures, in the order in which they are tried on a line."""

from __future__ import annotations

from hpc_train.records.signatures.base import Signature
from hpc_train.records.signatures.c10d import C10D
from hpc_train.records.signatures.container import CONTAINER
from hpc_train.records.signatures.cuda import CUDA
from hpc_train.records.signatures.filesystem import FILESYSTEM
from hpc_train.records.signatures.frameworks import FRAMEWORKS
from hpc_train.records.signatures.gpu_hardware import GPU_HARDWARE
from hpc_train.records.signatures.gpu_libraries import GPU_LIBRARIES
from hpc_train.records.signatures.lsf import LSF
from hpc_train.records.signatures.mpi import MPI
from hpc_train.records.signatures.mpich import MPICH
from hpc_train.records.signatures.nccl import NCCL
from hpc_train.records.signatures.nccl_network import NCCL_NETWORK
from hpc_train.records.signatures.nccl_notes import NCCL_NOTES
from hpc_train.records.signatures.nccl_tests import NCCL_TESTS
from hpc_train.records.signatures.python import PYTHON
from hpc_train.records.signatures.slurm_end import SLURM_END
from hpc_train.records.signatures.slurm_exit import SLURM_EXIT
from hpc_train.records.signatures.slurm_start import SLURM_START
from hpc_train.records.signatures.slurm_submit import SLURM_SUBMIT
from hpc_train.records.signatures.software import SOFTWARE
from hpc_train.records.signatures.torchrun import TORCHRUN
from hpc_train.records.signatures.training import TRAINING
from hpc_train.records.signatures.watchdog import WATCHDOG

# The more precise of two that could take a line comes first.
SIGNATURES: tuple[Signature, ...] = (
    *GPU_HARDWARE,
    *GPU_LIBRARIES,
    *CUDA,
    *CONTAINER,
    *SLURM_START,
    *SLURM_SUBMIT,
    *SLURM_END,
    *SLURM_EXIT,
    *LSF,
    *FRAMEWORKS,
    *MPI,
    *MPICH,
    *NCCL_NETWORK,
    *NCCL,
    *NCCL_TESTS,
    *NCCL_NOTES,
    *WATCHDOG,
    *C10D,
    *TORCHRUN,
    *TRAINING,
    *FILESYSTEM,
    *SOFTWARE,
    *PYTHON,
)

BY_ID = {signature.id: signature for signature in SIGNATURES}
