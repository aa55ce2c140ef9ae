"""Plain rows -> the main result, one line per series."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from hpc_train.reports.numbers import fixed, significant, with_limits
from hpc_train.reports.words import UNKNOWN, by_series, one_size, place, sizes, under

Row = Mapping[str, Any]
SPEEDS = {
    "throughput": ("samples_per_second", "samples/s"),
    "token throughput": ("tokens_per_second", "tokens/s"),
    "epoch time": ("epoch_time_s", "s an epoch"),
    "time to train": ("time_to_train_s", "s to train"),
}


def answers(points: Sequence[Row]) -> Iterator[str]:
    """Yield for each series the speedup of its best point, or the reason why there is none.

    If the best point is not the largest one, the largest is named too.
    """
    if points and not any(row["n_ok"] for row in points):
        yield "No run has a result."
        return
    alone, firsts = one_size(points), _Firsts(points)
    for series, own in by_series(points, itemgetter("series")).items():
        known = [r for r in own if r["speedup"] is not None and not r["is_baseline"]]
        if known:
            yield _comparison(known, firsts, str(series))
        elif not any(row["n_ok"] for row in own):
            yield f"No run{under(series)} has a result."
        elif own[0]["note"] and not alone:
            reason = str(own[0]["note"]).removeprefix("no speedup: ")
            yield f"No speedup{under(series)}: {reason}."
            yield from _trained(own, firsts.named, str(series))
        elif not alone:
            yield f"No point{under(series)} but the baseline has a result: nothing to compare."
    if alone:
        yield _alone(place(points[0]))


def baselines(points: Sequence[Row]) -> Iterator[str]:
    """Yield each series' baseline in absolute numbers."""
    one, named = one_size(points), sizes(points)
    for row in points:
        if (row["is_baseline"] or one) and (number := speed(row)):
            what = "Result" if one else "Baseline"
            yield f"{what}{under(row['series'])}: {named(row)}, {number} (n={row['n_ok']})."


def speed(row: Row) -> str:
    """Return `2240 samples/s, 56.35 ms a step`: the basis, and the step time if there is one."""
    column, unit = SPEEDS[row["basis"]]
    numbers = [f"{significant(row[column])} {unit}"] if row[column] is not None else []
    if row["basis"] == "throughput" and row["step_time_s"] is not None:
        numbers.append(f"{significant(row['step_time_s'] * 1e3)} ms a step")
    return ", ".join(numbers)


def _alone(where: str) -> str:
    if where == UNKNOWN:
        return (
            "The number of ranks is not known: nothing to compare; "
            "let the run print world_size (docs/events.md)."
        )
    return f"One size only ({where}): nothing to compare; run a study."


class _Firsts:
    """Names of points, and the baseline of each series or, if it has none, the common one."""

    def __init__(self, points: Sequence[Row]) -> None:
        self.named = sizes(points)
        firsts = [row for row in points if row["is_baseline"]]
        self._first = firsts[0] if firsts else None
        # If there are several, the first one.
        self._own = {row["series"]: row for row in reversed(firsts)}

    def of(self, row: Row) -> Row | None:
        """Return the baseline of a point."""
        return self._own.get(row["series"], self._first)


def _comparison(known: Sequence[Row], firsts: _Firsts, series: str) -> str:
    best = max(known, key=lambda row: float(row["speedup"]))
    largest = max(known, key=lambda row: (row["ideal"] or 0, row["ranks"] or 0))
    base, named = firsts.of(best), firsts.named
    first = named(base) if base else "the baseline"
    if base and base["series"] != series:
        first += under(base["series"])
    who, shown = named(best), with_limits(best, "speedup", 2)
    one = who.startswith(("1 ", "an ")) and "," not in who
    verb, than = "trains" if one else "train", f"times as fast as {first}"
    if best["regime"] == "weak":
        verb, than = "does" if one else "do", f"times the work of {first} in the same time"
    text = f"{who}{under(series)} {verb} {shown} {than}{_share(best)}"
    if largest is not best:
        text += f"; {named(largest)} {with_limits(largest, 'speedup', 2)}{_share(largest)}"
    return text + "."


def _trained(own: Sequence[Row], named: Callable[[Row], str], series: str) -> Iterator[str]:
    """Yield the speedup of the time to train, which is also defined across batch sizes."""
    timed = [r for r in own if r["time_to_train_speedup"] is not None]
    base = next((row for row in timed if row["is_baseline"]), None)
    others = [row for row in timed if row is not base]
    if base and others:
        best = max(others, key=lambda row: float(row["time_to_train_speedup"]))
        shown = with_limits(best, "time_to_train_speedup", 2)
        both = f"{named(best)} complete the training {shown} times as fast as {named(base)}"
        yield f"Time to train{under(series)}: {both}."


def _share(row: Row) -> str:
    if row["efficiency"] is None:
        return ""
    return f" (efficiency {fixed(row['efficiency'], 0, 100)} %)"
