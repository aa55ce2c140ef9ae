"""Plain rows -> the answer of a scaling report: how far it scales, and which series is faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.jobs.study import ALONE, Gates
from hpc_train.reports.point_and_series_names import (
    UNKNOWN,
    by_series,
    counted,
    one_size,
    place,
    rate,
    series_heading,
    short_series,
    size_unit,
    sizes,
    under,
)
from hpc_train.reports.points_table import FASTER, NO_SPREAD, ONE_RUN, SIZE_COLUMNS
from hpc_train.reports.value_format import Row, fixed, significant, with_limits
from hpc_train.runs.expected_runs import state_sizes

# Series with a line of their own; of more, the fastest one and the range of the others.
MOST = 4
MOST_NAMED = 6
# Limit of the efficiency of a study without gates.
EFFICIENCY = 0.7
_ROUNDING = 1e-9
SAME = "no difference seen"
ONE_SIZE = "One size only ({where}): no speedup; a study measures several sizes."
_ENDS = ("", "_low", "_high")
Size = tuple[object, ...]


class _Points:
    """The points of a report: names, baselines, and pairs of series at one size."""

    def __init__(self, points: Sequence[Row], fastest: Sequence[Row]) -> None:
        self.named, self._axis = sizes(points), series_heading(points)
        self._unit = size_unit(points).key
        self.own = by_series(points, lambda row: str(row["series"]))
        self._first = next((row for row in points if row["is_baseline"]), None)
        self._base = {row["series"]: row for row in reversed(points) if row["is_baseline"]}
        self._pairs = {(row["fastest"], row["series"], _size(row)): row for row in fastest}
        self.groups, self.alone = _groups(self.own, fastest), one_size(points)

    def label(self, series: str) -> str:
        """Return `srun: `, or nothing for the only series."""
        return "" if series == ALONE else f"{short_series(series, self._axis)}: "

    def base(self, row: Row) -> Row | None:
        """Return the baseline of a point: of its series, else the common one."""
        return self._base.get(row["series"], self._first)

    def best(self, names: Sequence[str], *, largest: bool) -> Row | None:
        """Return the fastest point of some series, or the fastest of their largest size."""
        known = [row for name in names for row in self.own[name] if _speed(row)]
        return max(
            known,
            key=lambda row: (largest * self.size(row), _speed(row)),
            default=None,
        )

    def size(self, row: Row) -> float:
        """Return the size of a point in the unit of the report, 0 if it is not known."""
        return float(row[self._unit] or 0)

    def pair(self, leader: str, other: str, size: Size) -> Row | None:
        """Return how much slower than `leader` the other series is, if they were compared."""
        if row := self._pairs.get((leader, other, size)):
            return row
        if row := self._pairs.get((other, leader, size)):
            ends = dict(zip(_ENDS, ("", "_high", "_low"), strict=True)).items()
            turned = {f"{n}{a}": row[f"{n}{b}"] for n in ("ratio", "mean_ratio") for a, b in ends}
            return {**row, **{n: v and 1 / v for n, v in turned.items()}, "not_ok": ""}
        return None


def answer_lines(points: Sequence[Row], fastest: Sequence[Row], gates: Gates) -> Iterator[str]:
    """Yield the answer: a line for each series, or for the fastest and the range of the others.

    The line of the fastest series at the largest size has its result, and the speedup from its
    baseline; those of the series that did the same work how much slower they are.
    """
    if not any(row["n_ok"] for row in points):
        yield "No run has a result."
        return
    if one_size(points):
        where = place(points[0])
        if where == UNKNOWN:
            what = state_sizes(sum(row["n_submitted"] for row in points))
            yield f"The number of ranks is not known, so nothing is compared; {what}."
        else:
            yield ONE_SIZE.format(where=where)
    found = _Points(points, fastest)
    short = len(found.own) > MOST
    yield from _changing(found, points)
    for count, group in enumerate(found.groups):
        if short and count == MOST:
            yield f"{len(found.groups) - MOST} more series, each with other work: see the table."
            break
        yield from _group(found, group, short=short)
    if len(found.own) == 1:
        yield from _efficient(found, points, gates)


def _changing(found: _Points, points: Sequence[Row]) -> Iterator[str]:
    """Yield that a setting changes with the size, if no two series have a size in common."""
    places: dict[str, list[str]] = {}
    for row in points:
        places.setdefault(str(row["series"]), []).append(found.named(row))
    every = [place for own in places.values() for place in own]
    if 1 < len(places) <= MOST and len(set(every)) == len(every) and not found.alone:
        where = ", ".join(
            f"{found.label(name).removesuffix(': ')} at {together(own)}"
            for name, own in places.items()
        )
        what = series_heading(points) or "a setting"
        yield f"{what} changes with the size, so no series has all sizes: {where}."


def _efficient(found: _Points, points: Sequence[Row], gates: Gates) -> Iterator[str]:
    """Yield at which sizes the efficiency reaches its limit: that of the gate, else 70 %."""
    limit = EFFICIENCY if gates.efficiency is None else gates.efficiency
    later = [row for row in points if row["efficiency"] is not None and not row["is_baseline"]]
    later.sort(key=found.size)
    below = [row for row in later if row["efficiency"] < limit - _ROUNDING]
    least, above = f"{100 * limit:.3g} %", len(later) - len(below)
    if not later:
        return
    if not below:
        every = "every" if len(later) == len(points) - 1 else "every measured"
        yield f"Efficiency is at least {least} at {every} size."
    elif above and below == later[above:]:
        yield f"Efficiency is at least {least} up to {found.named(later[above - 1])}."
    else:
        only = " only" if above else ""
        where = together([found.named(row) for row in below])
        yield f"Efficiency is below {least} at {where}{only}."


def _groups(own: Mapping[str, Sequence[Row]], fastest: Sequence[Row]) -> list[list[str]]:
    """Return the names of the series that did the same work, in order."""
    of = {row[name]: row["group"] for row in fastest for name in ("fastest", "series")}
    return [*by_series(own, lambda name: str(of.get(name, name))).values()]


def _group(found: _Points, group: Sequence[str], *, short: bool) -> Iterator[str]:
    top = found.best(group, largest=True)
    if top is None:
        yield f"{found.label(group[0])}no run has a result."
        return
    leader = str(top["series"])
    yield f"{found.label(leader)}{_result(found, top, leader)}."
    others = [name for name in group if name != leader]
    if short and len(others) > 1:
        yield from _range(found, top, others)
    else:
        for name in others:
            yield f"{found.label(name)}{_beside(found, top, name)}."


def _result(found: _Points, top: Row, series: str) -> str:
    """Return `32 GPUs 3026 samples/s, 7.2 [7.0, 7.4] times 4 GPUs, efficiency 90 %`."""
    text = f"{found.named(top)} {speed(top)}"
    base = found.base(top)
    first = found.named(base) if base else "the baseline"
    if base and base["series"] != series:
        first += under(base["series"])
    if top["is_baseline"] or top["speedup"] is None:
        return text + _why_none(found, series)
    basis = BASES[top["basis"]]
    # An epoch is the same data at every size, and a training the same training.
    grows = top["regime"] == "weak" and (basis.is_rate or basis.per_step)
    work = "the work of " if grows else ""
    text += f", {with_limits(top, 'speedup', 2)} times {work}{first}"
    if work:
        text += " in the same time"
    if top["efficiency"] is not None:
        text += f", efficiency {fixed(top['efficiency'], 0, 100)} %"
    if top["assumption"]:
        text += f", {top['assumption']}"
    best = found.best([series], largest=False)
    if best is not None and best is not top:
        text += f"; fastest: {found.named(best)} {speed(best)}"
    return text


def _why_none(found: _Points, series: str) -> str:
    own = found.own[series]
    reason = next((str(row["note"]) for row in own if row["note"]), "")
    if (
        found.alone
        or not reason
        or any(row["speedup"] is not None and not row["is_baseline"] for row in own)
    ):
        return ""
    return f"; no speedup: {reason.removeprefix('no speedup: ')}"


def _beside(found: _Points, top: Row, series: str) -> str:
    """Return `5.0 % slower [1.7, 8.3] at 32 GPUs; no difference seen at 4 and 8 GPUs`."""
    leader, where = str(top["series"]), found.named(top)
    at = found.pair(leader, series, _size(top))
    if at is None or at["ratio"] is None:
        best = found.best([series], largest=True)
        lacks = f"no result at {where} ({at['not_ok']}); " if at and at["not_ok"] else ""
        return f"{lacks}{_result(found, best, series)}" if best else f"{lacks}no run has a result"
    near: dict[str, list[str]] = {}
    for row in found.own[series]:
        pair = found.pair(leader, series, _size(row))
        if pair and pair["ratio"] is not None:
            near.setdefault(_word(pair), []).append(found.named(row))
    text = "" if _word(at) == SAME else f"{_slower(at)} at {where}"
    for word in (SAME, "faster"):
        if word in near:
            text += f"{'; ' * bool(text)}{word} at {together(near[word])}"
    return text + _over_sizes(at)


def _over_sizes(pair: Row) -> str:
    """Return `; 4.1 % slower [2.0, 6.1] on average over 3 sizes`, without repetitions nothing."""
    ends = [pair[f"mean_ratio{end}"] for end in _ENDS]
    if None in ends:
        return ""
    value, low, high = (100 * (1 - 1 / end) for end in ends)
    if low <= _ROUNDING and high >= -_ROUNDING:
        said = SAME
    else:
        shown = [significant(abs(end), 2) for end in (value, *sorted((low, high), key=abs))]
        word = "slower" if value > 0 else "faster"
        said = f"{shown[0]} % {word} [{shown[1]}, {shown[2]}]"
    return f"; {said} on average over {pair['shared_sizes']} sizes"


def _word(pair: Row) -> str:
    if pair["verdict"] == FASTER and pair["ratio"] is not None:
        return "slower" if pair["ratio"] > 1 else "faster"
    return pair["verdict"] if pair["verdict"] in (ONE_RUN, NO_SPREAD) else SAME


def _slower(pair: Row) -> str:
    """Return `5.0 % slower [1.7, 8.3]`: 1 - 1/ratio, as a share of the faster one's speed."""
    word = _word(pair)
    if word == SAME:
        return word
    share = f"{_percent(pair['ratio'])} % slower"
    if word != "slower":
        return f"{share} (n=1)" if word == ONE_RUN else f"{share} (repetitions are equal)"
    return f"{share} [{_percent(pair['ratio_low'])}, {_percent(pair['ratio_high'])}]"


def _percent(ratio: float | None) -> str:
    return significant(100 * (1 - 1 / ratio), 2) if ratio else "--"


def _range(found: _Points, top: Row, others: Sequence[str]) -> Iterator[str]:
    """Yield how much slower the second and the slowest of many series are at the largest size."""
    leader = str(top["series"])
    pairs = [(name, found.pair(leader, name, _size(top))) for name in others]
    known = [(name, pair) for name, pair in pairs if pair and pair["ratio"]]
    if known:
        first, last = (
            f"{found.label(name).removesuffix(': ')} {_slower(pair)}"
            for name, pair in (
                min(known, key=lambda one: one[1]["ratio"] or 0),
                max(known, key=lambda one: one[1]["ratio"] or 0),
            )
        )
        yield f"{len(known)} others at {found.named(top)}: {first}, to {last}."
    if lacking := len(others) - len(known):
        yield f"{counted(lacking, 'other')} without a result at {found.named(top)}."


def speed(row: Row) -> str:
    """Return `2240 samples/s`, `56.35 ms a step`: the value of the basis of a point."""
    value, basis = row[BASIS_COLUMNS[row["basis"]]], BASES[row["basis"]]
    if basis.per_step and value is not None:
        return f"{significant(value * 1e3)} ms a step"
    return f"{significant(value)} {basis.in_sentence}"


def _speed(row: Row) -> float:
    return rate(row, row["basis"]) or 0.0


def _size(row: Row) -> Size:
    return tuple(row[name] for name in SIZE_COLUMNS)


def together(named: Sequence[str]) -> str:
    """Return `1, 2 and 4 GPUs`, `1 GPU to 512 GPUs (10 sizes)`."""
    if len(named) > MOST_NAMED:
        return f"{len(named)} sizes from {named[0]} to {named[-1]}"
    if len(named) == 1:
        return named[0]
    words = [name.split(" ") for name in named]
    if all(len(word) == 2 and word[1].rstrip("s") == words[-1][1].rstrip("s") for word in words):
        numbers = [word[0] for word in words]
        return f"{', '.join(numbers[:-1])} and {numbers[-1]} {words[-1][1]}"
    return f"{'; '.join(named[:-1])} and {named[-1]}"
