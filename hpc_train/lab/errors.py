"""The error of a lab."""

from __future__ import annotations

from hpc_train.errors import HpcTrainError


class LabError(HpcTrainError):
    """The lab cannot be started or stopped, or another lab is running."""
