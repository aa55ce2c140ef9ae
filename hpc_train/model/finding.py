"""Finding: something in a script that is wrong or unwise, and what to write instead."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.value import Value

Severity = Literal["error", "warning", "info"]


class Finding(Value, frozen=True, kw_only=True):
    """One finding; lines count from 1.

    An error keeps the job from starting or makes it wrong, a warning costs time or hides a
    failure, an info is worth knowing.
    """

    id: str
    severity: Severity
    line: int
    message: str
    advice: str
