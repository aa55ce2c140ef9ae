"""What keeps a lab from coming up."""

from __future__ import annotations

from hpc_train.errors import HpcTrainError


class LabError(HpcTrainError):
    """The lab cannot be made, or another one is in the way."""
