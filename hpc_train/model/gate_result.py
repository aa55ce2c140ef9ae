"""GateResult: whether a gate is met at one point, with the numbers that decide it."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.value import Value

Outcome = Literal["met", "not met", "not decided"]


class GateResult(Value, frozen=True, kw_only=True):
    """The result of one gate at one point, for one run, or for a whole series.

    `reason` is a text with the value, its interval and the limit; `low` and `high` are None if
    there is no interval, `value` is None if there is no number.
    """

    gate: str
    where: str
    outcome: Outcome
    reason: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
