"""What can go wrong when a cluster is asked what it is."""

from __future__ import annotations

from hpc_train.errors import HpcTrainError


class ProbeError(HpcTrainError):
    """Slurm or a node is missing, silent, or says what nobody understands."""

    exit_code = 1


class WishError(HpcTrainError):
    """What is to be asked or written has a wrong name."""
