"""Columns and rows of the tables of nccl-tests and rccl-tests, whatever their version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import number

_HEAD = re.compile(r"(?:^|[\s#])(?:size|bytes)\s{1,30}(?:count|N)\s{1,30}type\s")
_TIMES = frozenset({"time", "cputime"})
_PLACEMENTS = ("out_of_place", "in_place")
_METRICS = {"time": "latency", "cputime": "latency", "algbw": "algbw", "busbw": "busbw"}
# Of the report by iteration: times of single iterations.
_ITERATIONS = {"i_min": "min", "i_max": "max", "i_p99": "p99"}
_WHOLE = re.compile(r"\d{1,15}")
_TYPE = re.compile(r"[a-z][a-z0-9_]{2,15}")
_ROOT = re.compile(r"-1|\d{1,7}")
_VALUE = re.compile(r"N/A|-?nan|-?inf|-?\d{1,20}(?:\.\d{0,10})?(?:[eE][-+]?\d{1,3})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class RowLayout(NamedTuple):
    """The columns of a table: the names before the first time, what each later one states."""

    lead: tuple[str, ...]
    columns: tuple[tuple[str, str] | None, ...]

    def hits(self, words: Sequence[str]) -> Iterator[Hit] | None:
        """Return the values of a complete row; None if a word is missing, extra or not a value."""
        words = _undated(words)
        lead = len(words) - len(self.columns)
        if lead < 0 or not self._whole(words[:lead]):
            return None
        if not all(map(_VALUE.fullmatch, words[lead:])):
            return None
        return self._hits(int(words[0]), words[lead:])

    def _whole(self, words: Sequence[str]) -> bool:
        names = self.lead
        # All-to-all and the like have no operation: some versions leave its column blank.
        if len(words) == len(names) - 1:
            names = tuple(name for name in names if name != "redop")
        if len(words) != len(names) or not starts_row(words):
            return False
        return "root" not in names or bool(_ROOT.fullmatch(words[-1]))

    def _hits(self, size: int, words: Sequence[str]) -> Iterator[Hit]:
        for column, word in zip(self.columns, words, strict=True):
            value = number(word) if column else None
            if column and value is not None:
                metric, variant = column
                yield Hit(metric, value, "global", message_size=size, variant=variant)


def layout(text: str) -> RowLayout | None:
    """Return the columns that the line with their names states; None if it is no such line."""
    head = _HEAD.search(text)
    if head is None:
        return None
    names = text[head.start() :].lstrip(" \t#").split()
    if "busbw" not in names or "algbw" not in names or not _TIMES.intersection(names):
        return None
    if names[-1] == "timestamp":
        names.pop()
    first = next(position for position, name in enumerate(names) if name in _TIMES)
    columns: list[tuple[str, str] | None] = []
    placement = -1
    for name in names[first:]:
        placement += name in _TIMES
        columns.append(_column(name, _PLACEMENTS[min(placement, 1)]))
    return RowLayout(tuple(names[:first]), tuple(columns))


def starts_row(words: Sequence[str]) -> bool:
    """Return whether the words begin as a row does: size, count, type."""
    return (
        len(words) >= 3
        and all(map(_WHOLE.fullmatch, words[:2]))
        and bool(_TYPE.fullmatch(words[2]))
    )


def are_values(words: Sequence[str]) -> bool:
    """Return whether all words could be the rest of a row."""
    return bool(words) and all(map(_VALUE.fullmatch, _undated(words)))


def _column(name: str, placement: str) -> tuple[str, str] | None:
    if name in _ITERATIONS:
        return "latency", f"{placement}_{_ITERATIONS[name]}"
    metric = _METRICS.get(name)
    return (metric, placement) if metric else None


def _undated(words: Sequence[str]) -> Sequence[str]:
    return words[:-2] if len(words) > 2 and _DATE.fullmatch(words[-2]) else words
