"""Plain rows -> the words that come before the table, and the notes after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.reports.numbers import fixed, significant, whole, with_limits
from hpc_train.reports.tables import OK, constants

Row = Mapping[str, Any]


def summary_lines(
    study: ExpectedStudy, runs: Sequence[Row], points: Sequence[Row]
) -> tuple[str, ...]:
    """Return what was measured, what came out, and what to distrust, in this order."""
    done = sum(run["state"] == OK for run in runs)
    lines = [f"Study {study.name}: {done} of {len(runs)} runs ok."]
    if not points:
        return (*lines, "No point to compare.")
    lines.append(regime_words(study, points))
    same = constants(points)
    if same:
        lines.append(f"The same at every point: {same}.")
    lines.append(_warmup(study, points))
    lines += _baselines(points)
    lines += _answers(points)
    lines += _distrust(runs, points)
    return tuple(lines)


def regime_words(study: ExpectedStudy, points: Sequence[Row]) -> str:
    """Say which regime was derived, and how that stands to what was declared."""
    regime = points[0]["regime"]
    if regime == "unknown":
        said = f"declared {study.scaling}" if study.scaling else "none declared"
        return f"Regime: not derived, the runs do not tell two sizes' batches ({said})."
    said = f"as declared: {study.scaling}" if study.scaling else "none declared"
    meaning = {
        "strong": "the same global batch at every size",
        "weak": "the same batch per rank; speedup means scaled speedup",
        "mixed": "neither the global batch nor the batch per rank stays the same",
    }
    return f"Regime: {regime} ({meaning[regime]}), derived from the runs, {said}."


def speedup_word(points: Sequence[Row]) -> str:
    """Return `scaled speedup` for weak scaling, so that nobody takes it for the strong one."""
    return "scaled speedup" if points and points[0]["regime"] == "weak" else "speedup"


def distinct_notes(points: Sequence[Row]) -> list[str]:
    """Return the notes of the series, each with the series it is about."""
    notes = {(row["series"], row["note"]): None for row in points if row["note"]}
    return [f"{series}: {note}." for series, note in notes]


def place(row: Row) -> str:
    """Return `4 nodes, 8 ranks`: which point a row is, without its series."""
    sizes = [
        f"{whole(row[name])} {word}{'s' if row[name] != 1 else ''}"
        for name, word in (("nodes", "node"), ("gpus", "GPU"), ("ranks", "rank"))
        if row[name]
    ]
    return ", ".join(sizes) or "unknown size"


def _warmup(study: ExpectedStudy, points: Sequence[Row]) -> str:
    if all(row["step_time_s"] is None for row in points):
        return "Warm-up: no steps in the logs; the first of several epochs is left out."
    rule = f"{study.warmup.steps} steps and {study.warmup.seconds:g} s"
    left = sorted({row["warmup_steps"] for row in points} - {None})
    return f"Warm-up left out of each run: {rule} (steps excluded: {_span(left)})."


def _baselines(points: Sequence[Row]) -> Iterator[str]:
    for row in points:
        if row["is_baseline"]:
            numbers = [
                f"{significant(row[name] * factor)} {unit}"
                for name, factor, unit in (
                    ("step_time_s", 1e3, "ms a step"),
                    ("samples_per_second", 1, "samples/s"),
                    ("epoch_time_s", 1, "s an epoch"),
                    ("time_to_train_s", 1, "s to train"),
                )
                if row[name] is not None
            ]
            yield (
                f"Baseline of {row['series']}: {place(row)}: {', '.join(numbers)} "
                f"(n={row['n_ok']}); compared by {row['basis']}."
            )


def _answers(points: Sequence[Row]) -> Iterator[str]:
    word = speedup_word(points)
    for series in dict.fromkeys(row["series"] for row in points):
        own = [r for r in points if r["series"] == series and not r["is_baseline"]]
        known = [row for row in own if row["speedup"] is not None]
        if known:
            best = max(known, key=lambda row: float(row["speedup"]))
            share = (
                ""
                if best["efficiency"] is None
                else (
                    f" of ideal {whole(best['ideal'])}, efficiency "
                    f"{fixed(best['efficiency'], 0, 100)} %"
                )
            )
            shown = with_limits(best, "speedup", 2)
            yield f"Best {word} of {series}: {shown}{share}, at {place(best)}."
    yield from distinct_notes(points)


def _distrust(runs: Sequence[Row], points: Sequence[Row]) -> Iterator[str]:
    for row in points:
        missing = f"{row['n_ok']} of {row['n_submitted']} ok ({row['not_ok']})"
        doubts = [*([missing] if row["not_ok"] else []), *row["flags"]]
        if doubts:
            yield f"Distrust {row['series']}, {place(row)}: {'; '.join(doubts)}."
    if any(row["speedup_low"] is not None for row in points):
        yield "Rows of one series are correlated: they share the noise of their baseline."


def _span(values: Sequence[int]) -> str:
    if not values:
        return "none"
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"
