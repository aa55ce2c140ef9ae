"""Point table -> laws of scaling fitted to each series.

All three laws are linear in their coefficients c >= 0, so that a fit needs no start value and has
one solution. Amdahl and USL in the relative time per resource, Gustafson in the speedup itself:

    Amdahl     q/S = c0 + c1 q                        f = c1/(c0 + c1)
    Gustafson  S   = c0 + c1 q                        f' = c0/(c0 + c1)
    USL        q/S = c0 + c1 (q - 1) + c2 q (q - 1)   a = c1/c0, b = c2/c0

USL is highest at q* = sqrt((c0 - c1)/c2).

The scale L (1/c0 or c0 + c1, the speedup at q = 1) is fitted too: the baseline is a measurement
like the others. Squares of relative residuals are least; a parameter is a ratio of coefficients
and has Fieller's interval. At most one law of a series is shown (`law_selection`).

Sources: G. M. Amdahl, AFIPS 30, 1967. J. L. Gustafson, CACM 31(5), 1988. N. J. Gunther, Guerrilla
Capacity Planning, Springer 2007, chapter 4, also for q*. E. C. Fieller, J. R. Stat. Soc. B 16,
1954.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd

from hpc_train.errors import ReportError
from hpc_train.model.scaling_fit import LEAST_SIZES, CurvePoint, Fit, Law, Parameter
from hpc_train.tables.fitted_sizes import FittedSizes, fitted_sizes, with_size_and_speedup
from hpc_train.tables.group_reductions import Floats
from hpc_train.tables.law_selection import aicc, lack_of_fit, misfit, noise_of, selected
from hpc_train.tables.least_squares import Solution, basis, half_width, ratio, solve

REACH, TRUSTED_REACH, MOST_REACH = 2.0, 4.0, 64.0
CURVE_POINTS = 65
# Published curves, continued one doubling by Amdahl: half miss by less than 1 %, the worst by 14 %.
DOUBT_PER_DOUBLING = 0.05
# Parameters, and the square of the peak, as ratios of two sums of coefficients.
RATIOS: dict[Law, dict[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "amdahl": {"f": ((0, 1), (1, 1))},
    "gustafson": {"f'": ((1, 0), (1, 1))},
    "usl": {"a": ((0, 1, 0), (1, 0, 0)), "b": ((0, 0, 1), (1, 0, 0))},
}
SCALE: dict[Law, tuple[int, ...]] = {"amdahl": (1, 1), "gustafson": (1, 1), "usl": (1, 0, 0)}
SUPERLINEAR = "superlinear: the efficiency is above 100 % at some size"
PEAK = ((1, -1, 0), (0, 0, 1))
_NOWHERE = np.empty(0, dtype=np.int64)


def fits(
    points: pd.DataFrame, forecast: float | None = None, *, force: bool = False
) -> tuple[Fit, ...]:
    """Fit Amdahl's, Gustafson's and Gunther's laws to each series of a point table.

    Weak scaling has Gustafson's law, all other Amdahl's; Gunther's USL is fitted to both. A law is
    refused if there are too few sizes, if the series is superlinear, if it does not fit, or if the
    other one fits better.

    Raises:
        ReportError: a forecast beyond twice the largest measured size, without `force`.
    """
    reach = _reach(forecast, force=force)
    weak = set(points["series"][points["regime"] == "weak"])
    usable = with_size_and_speedup(points)
    places = usable.groupby("series", sort=False).indices
    sizes = fitted_sizes(usable)
    found: list[Fit] = []
    # Many foreign logs may each be a series without a second size: no frame for those.
    for series in points["series"].unique():
        own = sizes.at(np.asarray(places.get(series, _NOWHERE), dtype=np.int64))
        count = len(set(own.q.tolist()))
        laws: tuple[Law, ...] = ("gustafson" if series in weak else "amdahl", "usl")
        each = []
        for law in laws:
            if count < LEAST_SIZES[law]:
                each.append(_too_few(str(series), law, len(own.q), count))
            elif own.above.any():
                refused = SUPERLINEAR
                each.append(Fit(series=str(series), law=law, points=len(own.q), refused=refused))
            else:
                each.append(_fit(str(series), law, own, reach))
        found += selected(tuple(each))
    return tuple(found)


def _too_few(series: str, law: Law, points: int, sizes: int) -> Fit:
    refused = f"needs {LEAST_SIZES[law]} sizes, there are {sizes}"
    return Fit(series=series, law=law, points=points, refused=refused)


def _reach(forecast: float | None, *, force: bool) -> float:
    if forecast is None:
        return REACH
    if not 1 <= forecast <= MOST_REACH:
        raise ReportError(
            f"a forecast of {forecast:g} times the largest measured size; allowed is 1 to "
            f"{REACH:g}, and with --force to {MOST_REACH:g}",
            f"--forecast {REACH:g}",
        )
    if forecast > REACH and not force:
        raise ReportError(
            f"a forecast of {forecast:g} times the largest measured size; beyond {REACH:g} times, "
            "forecasts are not reliable",
            f"measure a larger size, or force it: --forecast {forecast:g} --force",
        )
    return forecast


def _fit(series: str, law: Law, own: FittedSizes, reach: float) -> Fit:
    q, noise = own.q, noise_of(own.runs, own.variation)
    solved = solve(law, q, own.speedup, noise.runs)
    if not np.asarray(SCALE[law]) @ solved.c > 0:
        refused = "does not fit with a positive speedup at q = 1"
        return Fit(series=series, law=law, points=len(q), refused=refused)
    fit = Fit(
        series=series,
        law=law,
        points=len(q),
        largest_q=float(q.max()),
        rms=solved.rms,
        lack_of_fit_p=lack_of_fit(solved, noise),
        aicc=aicc(solved, noise),
        refused=misfit(solved, noise),
    )
    if fit.refused:
        return fit
    peak = _peak(solved)
    return msgspec.structs.replace(
        fit,
        parameters=_parameters(solved),
        peak=None if isinstance(peak, str) else peak,
        no_peak=peak if isinstance(peak, str) else "",
        curve=_curve(solved, q, reach),
        notes=_notes(own, reach),
    )


def _parameters(solved: Solution) -> tuple[Parameter, ...]:
    found = []
    for name, (over, under) in RATIOS[solved.law].items():
        value, low, high = ratio(solved, over, under)
        if solved.law != "usl" and high is not None:
            high = min(high, 1.0)
        found.append(Parameter(name=name, value=value, low=low, high=high))
    return (*found, _scale(solved))


def _scale(solved: Solution) -> Parameter:
    at_one = np.asarray(SCALE[solved.law], dtype=np.float64)
    value = float(at_one @ solved.c)
    half = float(half_width(solved, at_one))
    low, high = max(value - half, 0.0), value + half
    if solved.law == "gustafson":
        return Parameter(name="L", value=value, low=low, high=high)
    return Parameter(name="L", value=1 / value, low=1 / high, high=1 / low if low > 0 else None)


def _peak(solved: Solution) -> Parameter | str:
    """Return USL's q* = sqrt((1 - a)/b), or the reason why there is none."""
    if solved.law != "usl":
        bound = 1 / solved.c[1] if solved.law == "amdahl" and solved.c[1] > 0 else np.inf
        return f"stays below {bound:.3g}" if np.isfinite(bound) else "no upper bound"
    b = solved.c[2]
    if not b > half_width(solved, np.array([0.0, 0.0, 1.0])):
        return "the interval of b includes 0"
    square, low, high = ratio(solved, *PEAK)
    if not square > 1:
        return "highest at the baseline or below"
    if low is None or high is None:
        return "its interval is unbounded"
    value, low, high = (float(np.sqrt(one)) for one in (square, low, high))
    return Parameter(name="q*", value=value, low=max(low, 1.0), high=high)


def _curve(solved: Solution, q: Floats, reach: float) -> tuple[CurvePoint, ...]:
    largest = float(q.max())
    doublings = largest * 2.0 ** np.arange(1, int(np.log2(reach)) + 1)
    smooth = np.geomspace(float(q.min()), reach * largest, CURVE_POINTS)
    at = np.unique([*q, *smooth, *doublings])
    # USL has no value at some sizes below the baseline's, where contention is more than all work.
    at = at[basis(solved.law, at) @ solved.c > 0]
    columns = basis(solved.law, at)
    middle, half = columns @ solved.c, half_width(solved, columns)
    # The uncertainty of an extrapolation grows with each doubling, even if the points agree.
    half = np.maximum(half, middle * DOUBT_PER_DOUBLING * np.maximum(np.log2(at / largest), 0))
    low, high = np.maximum(middle - half, 0), middle + half
    if solved.law != "gustafson":
        with np.errstate(divide="ignore"):
            middle, low, high = at / middle, at / high, at / low
    return tuple(
        CurvePoint(
            q=float(size),
            speedup=float(value),
            low=float(least),
            high=float(most) if np.isfinite(most) else None,
            measured=bool(size <= largest),
        )
        for size, value, least, most in zip(at, middle, low, high, strict=True)
    )


def _notes(own: FittedSizes, reach: float) -> tuple[str, ...]:
    notes = []
    if reach > TRUSTED_REACH:
        notes.append(f"not reliable: extrapolated to {reach:g} times the largest measured size")
    elif reach > REACH:
        notes.append(f"extrapolated to {reach:g} times the largest measured size")
    if reach > 1 and own.on_one_node.all():
        notes.append("measured on one node: the network between nodes is not included")
    return tuple(notes)
