"""GateResult: whether a gate is met at one point, with the numbers that decide it."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.value import Value

Outcome = Literal["met", "not met", "not decided"]


class GateResult(Value, frozen=True, kw_only=True):
    """What one gate says of one point, of one run, or of a whole series.

    `reason` has the value, its interval and the limit in words; `low` and `high` are None where
    there is no interval, `value` where there is no number.
    """

    gate: str
    where: str
    outcome: Outcome
    reason: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
