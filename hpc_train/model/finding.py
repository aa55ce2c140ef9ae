"""Finding: an error or a risk in a script, and what to write instead."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.value import Value

Severity = Literal["error", "warning", "info"]


class LintFinding(Value, frozen=True, kw_only=True):
    """One finding; lines count from 1.

    An error prevents the job from starting or makes it wrong, a warning costs time or hides a
    failure, an info is for information.
    """

    id: str
    severity: Severity
    line: int
    message: str
    advice: str
