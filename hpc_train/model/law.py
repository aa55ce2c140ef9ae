"""Fit: a law of scaling, fitted to the points of a series."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.value import Value

Law = Literal["amdahl", "gustafson", "usl"]
# Different sizes that a fit takes: its parameters, the scale, and one more to see the scatter; of
# USL's two parameters the second shows at the far end only.
LEAST_SIZES: dict[Law, int] = {"amdahl": 3, "gustafson": 3, "usl": 6}


class Parameter(Value, frozen=True, kw_only=True):
    """A fitted number with its interval; a limit is None where there is none."""

    name: str
    value: float
    low: float | None
    high: float | None


class CurvePoint(Value, frozen=True, kw_only=True):
    """What a law says at q times the baseline's resources; `measured` within the data's range."""

    q: float
    speedup: float
    low: float | None
    high: float | None
    measured: bool


class Fit(Value, frozen=True, kw_only=True):
    """One law for one series; with `refused`, which says why, there is nothing else.

    `points` were fitted, the largest at `largest_q` times the baseline. `rms` is the root mean
    square of the relative residuals. `peak` is the q of the highest speedup, None where the law has
    none or the data do not bound it; `no_peak` says which. `curve` reaches to twice the largest
    measured q, farther only where somebody insisted; `notes` then say what it is worth.
    """

    series: str
    law: Law
    points: int = 0
    largest_q: float = 0.0
    parameters: tuple[Parameter, ...] = ()
    rms: float = 0.0
    peak: Parameter | None = None
    no_peak: str = ""
    curve: tuple[CurvePoint, ...] = ()
    refused: str = ""
    notes: tuple[str, ...] = ()
