"""Errors of probing a cluster."""

from __future__ import annotations

from hpc_train.errors import HpcTrainError


class ProbeError(HpcTrainError):
    """Slurm or a node is missing, does not answer, or its output cannot be parsed."""

    exit_code = 1


class WishError(HpcTrainError):
    """An invalid name in the options of a probe or a draft."""
