"""Judged rows -> the cheapest size in time and the fastest within the budget, or why none is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from hpc_train.advice.question import Question
from hpc_train.advice.step_time import compute_time
from hpc_train.model.advice import AdviceRow
from hpc_train.model.machine_size import MOST_RANKS
from hpc_train.model.quantity_text import TIME, hours_of, quantity_text
from hpc_train.model.value_range import Range

# A size below the usual efficiency may still be the fastest that is paid for.
_CHOSEN = ("fits", "recommended", "not worth it")


def choices(rows: Sequence[AdviceRow], question: Question) -> Iterator[str]:
    """Yield a sentence for each limit that is asked for and certainly met by a row.

    A row counts by its upper bounds: what it takes at most.
    """
    known = [row for row in rows if row.verdict in _CHOSEN and _fits(row) and _both(row)]
    deadline, budget = question.deadline_s, question.budget_gpu_hours
    if deadline is not None:
        in_time = [row for row in known if _most(row.end) <= deadline]
        yield from _best(in_time, lambda row: _most(row.gpu_hours), "Cheapest in time", question)
    if budget is not None:
        paid = [row for row in known if _most(row.gpu_hours) <= budget]
        yield from _best(paid, lambda row: _most(row.end), "Fastest within the budget", question)


def no_choice(rows: Sequence[AdviceRow], question: Question) -> str:
    """Return why no row is recommended: none fits, none can meet the limits, or none surely does.

    Only a lower bound beyond a limit makes it impossible to meet. A row that fits and meets the
    limits may have another reason against it.
    """
    fitting = [row for row in rows if row.fits != "no" or row.change]
    if not fitting:
        return f"No strategy fits at these sizes: ask for more {_unit(question)}s (--gpus)."
    certain = [row for row in fitting if _fits(row) and row.verdict != "not needed"]
    met = [row for row in certain if in_limits(row, question)]
    limits = list(_limits(question))
    if met or not limits:
        row = min(met or fitting, key=lambda row: row.ranks)
        where = f"{row.strategy} on {question.counted(row.ranks)}"
        fits = "fits, but is" if met else "is"
        return f"No size is recommended: {where} {fits} {row.verdict} ({row.reason})."
    asked = " and ".join(f"the {limit}" for limit in limits)
    if all(_impossible(row, question) for row in fitting):
        least = _ends_of(fitting, question, lambda bounds: bounds.low)
        sizes = f"up to {question.counted(max(question.sizes))}"
        return f"No size {sizes} can meet {asked}: it takes at least {least}.{_more_gpus(question)}"
    most = _ends_of(fitting, question, _most)
    if not most:
        return (
            f"Whether a size meets {asked} is unknown: without a measured step no time has an "
            "upper bound. Measure one: --calibrate, or --measured STUDY."
        )
    return f"No size is certain to meet {asked}: the best are certain to take at most {most}."


def in_limits(row: AdviceRow, question: Question) -> bool:
    """Whether even the upper bounds of a row are within the deadline and the budget."""
    limits = ((row.end, question.deadline_s), (row.gpu_hours, question.budget_gpu_hours))
    return all(most is None or _most(bounds) <= most for bounds, most in limits)


def beyond(bounds: Range | None, most: float | None) -> bool:
    """Whether even the lower bound is beyond a limit."""
    return bounds is not None and most is not None and bounds.low > most


def _impossible(row: AdviceRow, question: Question) -> bool:
    late = beyond(row.end, question.deadline_s)
    return late or beyond(row.gpu_hours, question.budget_gpu_hours)


def _limits(question: Question) -> Iterator[str]:
    if question.deadline_s is not None:
        yield f"deadline of {deadline_text(question)}"
    if question.budget_gpu_hours is not None:
        yield f"budget of {budget_text(question)}"


def _ends_of(rows: Sequence[AdviceRow], question: Question, end: Callable[[Range], float]) -> str:
    """Return the least time and the least GPU-hours of any row, each of its own."""
    times = [end(row.end) for row in rows if row.end is not None]
    hours = [end(row.gpu_hours) for row in rows if row.gpu_hours is not None]
    if not times or not hours or min(times) == math.inf:
        return ""
    busy = quantity_text(min(hours), hours_of(_unit(question)))
    return f"{quantity_text(min(times), TIME)}, and {busy}"


def _more_gpus(question: Question) -> str:
    """Return how many GPUs a deadline needs, if they lose nothing; empty if that is not known."""
    program, first, asked = question.program, question.baseline, question.deadline_s
    on_one_rank = first is None or first.ranks == 1
    if not (asked and on_one_rank and program.global_batch and program.steps):
        return ""
    batch = float(program.global_batch)
    alone = compute_time(program, question.machine, 1, batch, first).low * program.steps
    needed = math.ceil(alone / asked)
    if needed <= max(question.sizes):
        return ""
    said = f" The deadline needs at least {question.counted(needed)}"
    most = question.machine.most_ranks
    if needed > most:
        return f"{said}." if most == MOST_RANKS else f"{said}; {most:,} are the most of one job."
    return f"{said}: --gpus {needed}."


def deadline_text(question: Question) -> str:
    """Return the deadline with its unit."""
    return quantity_text(question.deadline_s or 0.0, TIME)


def budget_text(question: Question) -> str:
    """Return the budget with its unit."""
    return quantity_text(question.budget_gpu_hours or 0.0, hours_of(_unit(question)))


def _unit(question: Question) -> str:
    return "GPU" if question.machine.gpus_per_node else "rank"


def _best(
    rows: Sequence[AdviceRow],
    value: Callable[[AdviceRow], float],
    name: str,
    question: Question,
) -> Iterator[str]:
    if not rows:
        return
    best = min(rows, key=lambda row: (value(row), row.ranks))
    yield (
        f"{name}: {best.strategy} on {question.counted(best.ranks)}, at most "
        f"{quantity_text(_most(best.end), TIME)} and "
        f"{quantity_text(_most(best.gpu_hours), hours_of(_unit(question)))}."
    )


def _fits(row: AdviceRow) -> bool:
    return row.fits == "yes" or bool(row.change)


def _both(row: AdviceRow) -> bool:
    return all(one is not None and one.high is not None for one in (row.end, row.gpu_hours))


def _most(bounds: Range | None) -> float:
    return bounds.high if bounds is not None and bounds.high is not None else float("inf")
