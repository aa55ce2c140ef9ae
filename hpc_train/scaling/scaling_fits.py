"""Fit: a law of scaling, fitted to the points of a series."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from hpc_train.base.values import Value
from hpc_train.scaling.points import CONFIDENCE, f_above, students_t
from hpc_train.scaling.record_arrays import Floats, numbers

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
    the reason. `curve` extends to REACH times the largest measured q.
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


REACH = 2.0
ONE_NODE = "measured on one node: the network between nodes is not included"
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


def fits(points: pd.DataFrame) -> tuple[Fit, ...]:
    """Fit Amdahl's, Gustafson's and Gunther's laws to each series of a point table.

    Weak scaling has Gustafson's law, all other Amdahl's; Gunther's USL is fitted to both. A law is
    refused if there are too few sizes, if the series is superlinear, if it does not fit, or if the
    other one fits better.
    """
    weak = set(points["series"][points["regime"] == "weak"])
    names = ("ideal", "speedup", "speedup_low", "speedup_high", "n_ok", "cv", "nodes")
    sizes = pd.DataFrame({name: numbers(points, name) for name in names})
    known = [sizes[name].between(1 / LARGEST, LARGEST) for name in names[:2]]
    series = points["series"].reset_index(drop=True)
    sizes = sizes[known[0] & known[1] & (points["regime"] != "mixed").to_numpy(dtype=bool)]
    of_series = dict(iter(sizes.groupby(series[sizes.index], sort=False)))
    found: list[Fit] = []
    for name in series.unique():
        own = of_series.get(name, sizes[:0])
        count = own["ideal"].nunique()
        laws: tuple[Law, ...] = ("gustafson" if name in weak else "amdahl", "usl")
        each = []
        for law in laws:
            fit = Fit(series=str(name), law=law, points=len(own))
            if count < LEAST_SIZES[law]:
                refused = f"needs {LEAST_SIZES[law]} sizes, there are {count}"
                each.append(msgspec.structs.replace(fit, refused=refused))
            elif _above(own).any():
                each.append(msgspec.structs.replace(fit, refused=SUPERLINEAR))
            else:
                each.append(_fitted(fit, own))
        found += selected(tuple(each))
    return tuple(found)


def _above(own: pd.DataFrame) -> pd.Series[bool]:
    """Which points are above the ideal speedup, by the rule of the flag `superlinear`."""
    q, rounded = own["ideal"], (own["speedup"] / own["ideal"]).round(3)
    larger = (own["speedup_low"] / q).fillna(rounded) > 1
    smaller = (own["speedup_high"] / q).fillna(rounded) < 1
    return ((q > 1) & larger) | ((q < 1) & smaller)


def _fitted(fit: Fit, own: pd.DataFrame) -> Fit:
    q, speedup, runs, variation = (
        own[name].to_numpy() for name in ("ideal", "speedup", "n_ok", "cv")
    )
    noise = noise_of(runs, variation)
    solved = solve(fit.law, q, speedup, noise)
    if not np.asarray(SCALE[fit.law]) @ solved.c > 0:
        refused = "does not fit with a positive speedup at q = 1"
        return msgspec.structs.replace(fit, refused=refused)
    fit = msgspec.structs.replace(
        fit,
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
        curve=_curve(solved, q),
        notes=(ONE_NODE,) if (own["nodes"] == 1).all() else (),
    )


def _parameters(solved: Solution) -> tuple[Parameter, ...]:
    """Return those of the law, and its scale L."""
    found = []
    for name, (over, under) in RATIOS[solved.law].items():
        value, low, high = ratio(solved, over, under)
        if solved.law != "usl" and high is not None:
            high = min(high, 1.0)
        found.append(Parameter(name=name, value=value, low=low, high=high))
    at_one = np.asarray(SCALE[solved.law], dtype=np.float64)
    value = float(at_one @ solved.c)
    half = float(half_width(solved, at_one))
    low, high = max(value - half, 0.0), value + half
    limit: float | None = high
    if solved.law != "gustafson":
        value, low, limit = 1 / value, 1 / high, 1 / low if low > 0 else None
    return (*found, Parameter(name="L", value=value, low=low, high=limit))


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


def _curve(solved: Solution, q: Floats) -> tuple[CurvePoint, ...]:
    largest = float(q.max())
    at = np.unique([*q, *np.geomspace(float(q.min()), REACH * largest, CURVE_POINTS)])
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


# No machine is larger; products of six such numbers are still numbers.
LARGEST = 1e20


# Residuals of the laws of a series, and the noise between its runs -> the law that is shown.
#
# With repetitions, an F test of lack of fit decides whether a law fits; without them, the residual
# does. Of several laws that fit, the one with the lowest AICc is shown.

LEVEL = 0.05
# Without repetitions, a larger residual is not taken for noise.
MOST_RESIDUAL = 0.1
# Squares of larger numbers are not needed to refuse a law.
_MOST = 1e100


class Noise(NamedTuple):
    """Runs of each point, and the noise between them: relative sum of squares and its freedom."""

    runs: Floats
    squares: float
    freedom: float

    @property
    def is_measured(self) -> bool:
        """Whether there are repetitions; equal digits in each of them are no noise."""
        return self.freedom > 0 and self.squares > self.freedom * LEAST_SCATTER**2

    @property
    def relative(self) -> float:
        """The standard deviation between runs of a point, relative to their mean."""
        return float(np.sqrt(self.squares / self.freedom)) if self.freedom > 0 else float("nan")


def noise_of(runs: Floats, variation: Floats) -> Noise:
    """Return the noise between the runs of some points, from their columns `n_ok` and `cv`."""
    runs = np.maximum(np.nan_to_num(runs, nan=1.0), 1.0)
    variation = np.minimum(variation, _MOST)
    known = (runs > 1) & ~np.isnan(variation)
    squares = float(np.sum((runs[known] - 1) * variation[known] ** 2))
    return Noise(runs, squares, float(np.sum(runs[known] - 1)))


def lack_of_fit(solved: Solution, noise: Noise) -> float | None:
    """Return the probability p of residuals this large if the law holds; None without repetitions.

    F = (sum n r^2/(m - k))/(sum (n - 1) s^2/(N - m)) for m points of n runs, N in all, residuals r,
    relative standard deviations s between runs, and k coefficients; p is the upper tail of F with
    m - k and N - m degrees of freedom (N. R. Draper and H. Smith, Applied Regression Analysis,
    Wiley 1998, section 2.1).
    """
    freedom = len(solved.residuals) - len(solved.c)
    if not noise.is_measured or freedom < 1:
        return None
    squares = float(np.sum(noise.runs * np.minimum(np.abs(solved.residuals), _MOST) ** 2))
    ratio = (squares / freedom) / (noise.squares / noise.freedom)
    return f_above(freedom, noise.freedom, min(ratio, _MOST))


def aicc(solved: Solution, noise: Noise) -> float | None:
    """Return N ln(R/N) + 2 k + 2 k (k + 1)/(N - k - 1); None if N is k + 1 or less.

    R is the residual sum of squares of N runs (of N points without repetitions), k the number of
    coefficients and one for the variance (C. M. Hurvich and C.-L. Tsai, Biometrika 76, 1989).
    """
    runs = noise.runs if noise.is_measured else np.ones_like(noise.runs)
    within = noise.squares if noise.is_measured else 0.0
    squares = within + float(np.sum(runs * np.minimum(np.abs(solved.residuals), _MOST) ** 2))
    n, k = float(runs.sum()), len(solved.c) + 1
    if n <= k + 1:
        return None
    # Digits beyond the sixth are no evidence for a law.
    variance = max(squares / n, LEAST_SCATTER**2)
    return float(n * np.log(variance) + 2 * k + 2 * k * (k + 1) / (n - k - 1))


def misfit(solved: Solution, noise: Noise) -> str:
    """Return why a law does not fit; empty if it does."""
    p, shown = lack_of_fit(solved, noise), f"residual {100 * solved.rms:.2g} %"
    if p is None:
        limit = f"more than {100 * MOST_RESIDUAL:g} %, without repetitions"
        return f"does not fit: {shown}, {limit}" if solved.rms > MOST_RESIDUAL else ""
    if p >= LEVEL:
        return ""
    small = f"p {p:.1g}" if p >= 0.001 else "p < 0.001"
    return f"does not fit: {shown}, {100 * noise.relative:.2g} % between runs (F test, {small})"


def selected(fits: tuple[Fit, ...]) -> tuple[Fit, ...]:
    """Refuse each law of a series that fits, but has a higher AICc than another one."""
    known = [fit for fit in fits if not fit.refused]
    if len(known) < 2:
        return fits
    # The first one of equal ones has fewer coefficients.
    best = min(known, key=lambda fit: np.inf if fit.aicc is None else fit.aicc)
    return tuple(fit if fit is best or fit.refused else _second(fit, best) for fit in fits)


def _second(fit: Fit, best: Fit) -> Fit:
    by = "" if None in (fit.aicc, best.aicc) else f" by {(fit.aicc or 0) - (best.aicc or 0):.2g}"
    return msgspec.structs.replace(
        fit,
        parameters=(),
        peak=None,
        no_peak="",
        curve=(),
        notes=(),
        refused=f"{LAW_NAMES[best.law]} has a lower AICc{by}",
    )


# A law of scaling that is linear in its coefficients -> its solution by least squares.
#
# Squares of relative residuals are least, and no coefficient is below 0 (C. L. Lawson and R. J.
# Hanson, Solving Least Squares Problems, Prentice-Hall 1974, chapter 23). `scaling_fits` describes
# the coefficients of each law.

# Digits beyond the sixth are not significant: a perfect fit by chance gives no bounds.
LEAST_SCATTER = 1e-6


class Solution(NamedTuple):
    """Coefficients, their covariance, Student's t of the interval, and the relative residuals.

    `rms` is the root mean square of the residuals.
    """

    law: Law
    c: Floats
    covariance: Floats
    t: float
    residuals: Floats
    rms: float


def _not_negative(columns: Floats, inverse: Floats, wanted: Floats) -> Floats:
    """Return the coefficients of 0 or above with the least squares.

    They are the plain solution for those that are above 0; `inverse` is the pseudo-inverse of all
    columns. A law has three at most, so that each choice of them is tried, unless all are clearly
    above 0; the import of scipy.optimize takes longer than a whole report.
    """
    count = columns.shape[1]
    every: Floats = inverse @ wanted
    if every.min() > LEAST_SCATTER * every.max():
        return every
    best, least = np.zeros(count), float(wanted @ wanted)
    for size in range(1, count + 1):
        for chosen in map(list, combinations(range(count), size)):
            found = every if size == count else _plain(columns[:, chosen], wanted)
            rest = wanted - columns[:, chosen] @ found
            if (found >= 0).all() and float(rest @ rest) < least:
                best, least = np.zeros(count), float(rest @ rest)
                best[chosen] = found
    return best


def _plain(columns: Floats, wanted: Floats) -> Floats:
    if columns.shape[1] == 1:
        # The columns have the length 1.
        return wanted @ columns
    return np.asarray(np.linalg.lstsq(columns, wanted, rcond=None)[0], dtype=np.float64)


def basis(law: Law, q: Floats) -> Floats:
    """Return the design matrix of a law, a row for each size."""
    columns = [np.ones_like(q), q - 1, q * (q - 1)] if law == "usl" else [np.ones_like(q), q]
    return np.stack(columns, axis=-1)


def solve(law: Law, q: Floats, speedup: Floats, noise: Noise | None = None) -> Solution:
    """Minimise the relative residuals with all coefficients at 0 or above.

    The variance of a point's mean is inverse to its number of runs. With repetitions the variance
    of a run is that of residuals and noise together, with the degrees of freedom of all runs.
    """
    target = speedup if law == "gustafson" else q / speedup
    runs = np.ones_like(q) if noise is None else noise.runs
    weight = np.sqrt(runs / runs.mean())
    relative = basis(law, q) / target[:, np.newaxis]
    weighted = relative * weight[:, np.newaxis]
    # Columns are normalised: q (q - 1) may be a million times 1 on a large machine.
    length = np.linalg.norm(weighted, axis=0)
    columns = weighted / length
    inverse = np.linalg.pinv(columns)
    c = _not_negative(columns, inverse, weight) / length
    freedom = len(q) - len(c)
    residuals = relative @ c - 1
    squares = float(np.sum((weight * residuals) ** 2))
    if noise is not None and noise.is_measured:
        freedom += int(noise.freedom)
        squares += noise.squares / float(runs.mean())
    scatter = max(float(np.sqrt(squares / freedom)), LEAST_SCATTER)
    covariance = scatter**2 * (inverse @ inverse.T) / np.outer(length, length)
    t = float(students_t(freedom, CONFIDENCE))
    rms = float(np.sqrt(np.mean(residuals**2)))
    return Solution(law, c, covariance, t, residuals, rms)


def ratio(solved: Solution, over: Any, under: Any) -> tuple[float, float | None, float | None]:
    """Return the ratio of two sums of coefficients, with Fieller's limits, none of them below 0."""
    u, v = np.asarray(over, dtype=np.float64), np.asarray(under, dtype=np.float64)
    c, covariance = solved.c, solved.covariance
    variances = (u @ covariance @ u, v @ covariance @ v, u @ covariance @ v)
    low, high = (float(x) for x in fieller_limits(u @ c, v @ c, variances, solved.t))
    if not np.isfinite(high):
        return float(u @ c / (v @ c)), None, None
    return float(u @ c / (v @ c)), max(low, 0.0), max(high, 0.0)


def half_width(solved: Solution, sums: Floats) -> Floats:
    """Return the half widths of intervals of sums of coefficients."""
    variance = np.einsum("...j,jk,...k->...", sums, solved.covariance, sums)
    # Rounding can make the variance of an exactly known sum slightly negative.
    return solved.t * np.sqrt(np.maximum(variance, 0.0))


def fieller_limits(a: Any, b: Any, variances: tuple[Any, Any, Any], t: Any) -> tuple[Any, Any]:
    """Return the limits of a/b for estimates with variances (of a, of b, covariance).

    They are infinite where b is less than t standard errors from zero: no ratio is excluded then.
    """
    var_a, var_b, both = variances
    bound = b**2 - t**2 * var_b
    # The discriminant in a form without cancellation of large numbers.
    inner = b**2 * var_a + a**2 * var_b - 2 * a * b * both - t**2 * (var_a * var_b - both**2)
    root = t * np.sqrt(np.maximum(inner, 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = (a * b - t**2 * both - root) / bound, (a * b - t**2 * both + root) / bound
    return np.where(bound > 0, low, -np.inf), np.where(bound > 0, high, np.inf)
