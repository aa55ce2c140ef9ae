"""What can go wrong when a cluster is asked what it is."""

from __future__ import annotations

from hpc_train.errors import HpcTrainError


class ProbeError(HpcTrainError):
    """Slurm is missing, silent, or says what nobody understands."""
