"""Fit: a law of scaling, fitted to the points of a series."""

from typing import Literal

from hpc_train.base.value import Value

Law = Literal["amdahl", "gustafson", "usl"]
LAW_NAMES: dict[Law, str] = {"amdahl": "Amdahl", "gustafson": "Gustafson", "usl": "USL"}
# Minimum number of sizes of a fit: its parameters, the scale, and one more for the scatter; the
# second parameter of USL is visible at large sizes only.
LEAST_SIZES: dict[Law, int] = {"amdahl": 3, "gustafson": 3, "usl": 6}


class Parameter(Value, frozen=True, kw_only=True):
    """A fitted number with its interval; None means no limit."""

    name: str
    value: float
    low: float | None
    high: float | None


class CurvePoint(Value, frozen=True, kw_only=True):
    """Value of a law at q times the baseline's resources; `measured` within the data's range."""

    q: float
    speedup: float
    low: float | None
    high: float | None
    measured: bool


class Fit(Value, frozen=True, kw_only=True):
    """One law for one series; `refused` is the reason why it is not shown.

    `points` were fitted, the largest at `largest_q` times the baseline. `rms` is the root mean
    square of the relative residuals. `lack_of_fit_p` is the probability of residuals this large if
    the law holds, None without repetitions; `aicc` is the corrected information criterion of
    Akaike, of which the lowest is the best. A refused law has no parameters and no curve. `peak` is
    the q of the highest speedup, None if the law has none or the data do not bound it; `no_peak` is
    the reason. `curve` extends to twice the largest measured q, or further if forced; `notes` then
    contain a warning.
    """

    series: str
    law: Law
    points: int = 0
    largest_q: float = 0.0
    parameters: tuple[Parameter, ...] = ()
    rms: float = 0.0
    lack_of_fit_p: float | None = None
    aicc: float | None = None
    peak: Parameter | None = None
    no_peak: str = ""
    curve: tuple[CurvePoint, ...] = ()
    refused: str = ""
    notes: tuple[str, ...] = ()
