"""Judged rows -> the cheapest size in time, and the fastest within the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hpc_train.advice.question import Question
from hpc_train.model.advice import AdviceRow
from hpc_train.model.value_range import Range

# A size below the usual efficiency may still be the fastest that is paid for.
_CHOSEN = ("fits", "recommended", "not worth it")
_HOUR = 3600.0


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


def _best(
    rows: Sequence[AdviceRow],
    value: Callable[[AdviceRow], float],
    name: str,
    question: Question,
) -> Iterator[str]:
    if not rows:
        return
    best = min(rows, key=lambda row: (value(row), row.ranks))
    unit = "GPU" if question.machine.gpus_per_node else "rank"
    yield (
        f"{name}: {best.strategy} on {best.ranks} {unit}{'s' * (best.ranks != 1)}, at most "
        f"{_most(best.end) / _HOUR:.3g} h and {_most(best.gpu_hours):.3g} {unit}-hours"
        f"{_money(best, question)}."
    )


def _money(row: AdviceRow, question: Question) -> str:
    price = question.machine.price_per_gpu_hour
    if price is None:
        return ""
    return f", {price * _most(row.gpu_hours):.3g} {question.machine.currency}".rstrip()


def _fits(row: AdviceRow) -> bool:
    return row.fits == "yes" or bool(row.change)


def _both(row: AdviceRow) -> bool:
    return all(one is not None and one.high is not None for one in (row.end, row.gpu_hours))


def _most(bounds: Range | None) -> float:
    return bounds.high if bounds is not None and bounds.high is not None else float("inf")
