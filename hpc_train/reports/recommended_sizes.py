"""Plain rows -> the last efficient size, the last useful doubling, and the fastest point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.metrics import BASES, BASIS_COLUMNS
from hpc_train.model.study import Gates
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import by_series, names, rate
from hpc_train.reports.value_format import fixed, significant

# Limits of a study without gates. CSC Finland requires 1.5 for its large partition.
EFFICIENCY, DOUBLING = 0.7, 1.5
# 2 x 0.75 may differ from 1.5 by rounding.
_ROUNDING = 1e-9
_COSTS = (("gpu_hours_per_million", "GPU-hours"), ("node_hours_per_million", "node-hours"))
Named = Callable[[Row], str]


class _Size(NamedTuple):
    """A point with the value that has to reach a limit."""

    row: Row
    value: float


def efficient_sizes(own: Sequence[Row], gates: Gates, named: Named) -> str:
    """Return up to which size of a series the efficiency reaches its limit, or where it does not.

    The limit is `gates.efficiency`, 0.7 without a gate. Empty if only the baseline has an
    efficiency.
    """
    later, least = _efficiencies(own), least_efficiency(gates)
    below = [one for one in later if one.value < _efficiency(gates) - _ROUNDING]
    if not later:
        return ""
    if not below:
        return f"efficiency is at least {least} up to {named(later[-1].row)}, the largest size"
    if len(below) == len(later):
        every = "both sizes" if len(later) == 2 else f"all {len(later)} sizes"
        where = named(later[0].row) if len(later) == 1 else f"{every} above the baseline"
        return f"efficiency is below {least} at {where}"
    if below == later[-len(below) :]:
        return f"efficiency is at least {least} up to {named(later[-len(below) - 1].row)}"
    return f"efficiency is below {least} at {', '.join(named(one.row) for one in below)} only"


def useful_doublings(own: Sequence[Row], gates: Gates, named: Named) -> str:
    """Return up to which size of a series each doubling reaches its limit.

    The limit is `gates.doubling`, 1.5 times the speed without a gate. Empty without a doubling.
    """
    doubled = _doublings(own)
    if not doubled:
        return ""
    last = last_useful(own, gates)
    if last is None:
        first = doubled[0]
        return f"the first doubling, to {named(first.row)}, gives {first.value:.2f} times the speed"
    least = least_doubling(gates)
    return f"each doubling up to {named(last)} gives at least {least} times the speed"


def last_efficient(own: Sequence[Row], gates: Gates) -> Row | None:
    """Return the last size before the first one whose efficiency is below the limit."""
    return _last(_efficiencies(own), _efficiency(gates))


def last_useful(own: Sequence[Row], gates: Gates) -> Row | None:
    """Return the last size before the first one whose doubling gives less than the limit."""
    return _last(_doublings(own), _doubling(gates))


def least_efficiency(gates: Gates) -> str:
    """Return the limit of the efficiency, `70 %`."""
    return f"{100 * _efficiency(gates):.3g} %"


def least_doubling(gates: Gates) -> str:
    """Return the limit of the speed of a doubled size, `1.5`."""
    return f"{_doubling(gates):g}"


def _efficiency(gates: Gates) -> float:
    return EFFICIENCY if gates.efficiency is None else gates.efficiency


def _doubling(gates: Gates) -> float:
    return DOUBLING if gates.doubling is None else gates.doubling


def _efficiencies(own: Sequence[Row]) -> list[_Size]:
    return [
        _Size(row, row["efficiency"])
        for row in _sorted(own)
        if row["efficiency"] is not None and not row["is_baseline"]
    ]


def _doublings(own: Sequence[Row]) -> list[_Size]:
    return [_Size(row, 2 * row["doubling"]) for row in _sorted(own) if row["doubling"] is not None]


def fastest_points(
    points: Sequence[Row], fastest: Sequence[Row], study: ExpectedStudy
) -> Iterator[str]:
    """Yield the fastest of all points whose series are compared, with its cost."""
    group = {row[name]: row["group"] for row in fastest for name in ("fastest", "series")}
    named = names(points)
    for own in by_series(points, lambda row: str(group.get(row["series"], row["series"]))).values():
        known = [row for row in own if _speed(row) is not None]
        if len(known) > 1:
            yield _fastest(known, study, named)


def _fastest(known: Sequence[Row], study: ExpectedStudy, named: Named) -> str:
    best = max(known, key=lambda row: _speed(row) or 0.0)
    unit = BASES[best["basis"]].in_sentence
    value = significant(best[BASIS_COLUMNS[best["basis"]]])
    return f"Fastest point: {named(best)}, {value} {unit}{_cost(best, known, study, named)}."


def _cost(best: Row, known: Sequence[Row], study: ExpectedStudy, named: Named) -> str:
    """Return the cost of a million samples or tokens, and its ratio to the cheapest point's."""
    key, unit = next(((k, u) for k, u in _COSTS if best[k] is not None), ("", ""))
    if not key:
        return ""
    money = ""
    if best["cost_per_million"] is not None:
        shown = significant(best["cost_per_million"], 3)
        money = f" ({' '.join(filter(None, (shown, study.currency)))})"
    counted = BASES[best["basis"]].counted
    text = f"; a million {counted} take {significant(best[key], 3)} {unit}{money}"
    cheapest = min((r for r in known if r[key] is not None), key=lambda row: float(row[key]))
    if cheapest is best:
        return text
    return f"{text}, {fixed(best[key] / cheapest[key], 2)} times as many as at {named(cheapest)}"


def _speed(row: Row) -> float | None:
    return rate(row, row["basis"])


def _sorted(own: Sequence[Row]) -> list[Row]:
    return sorted(own, key=lambda row: (row["ideal"] or 0, row["nodes"] or 0, row["ranks"] or 0))


def _last(sizes: Sequence[_Size], limit: float) -> Row | None:
    """Return the last size before the first one below the limit."""
    last = None
    for row, value in sizes:
        if value < limit - _ROUNDING:
            break
        last = row
    return last
