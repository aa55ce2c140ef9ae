"""Records -> the program that printed the results of each run, and its unit of counting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hpc_train.model.metrics import RESULTS
from hpc_train.tables.group_values import packed
from hpc_train.tables.record_arrays import RecordArrays

# Results that are compared; a sample is a sequence for one program, an image for another.
_RESULTS = tuple(metric.record for metric in RESULTS)
_COUNTED = {"samples": "samples"} | {
    metric.record: metric.basis.item for metric in RESULTS if metric.basis and metric.basis.is_rate
}
# Values stated by a user have no program.
_STATED = frozenset({"table", "points"})
_LENGTH = "sequence_length"


class Printed(NamedTuple):
    """Facts from the records, by the run's number: parsers, units counted, longest sequence.

    Runs without such records are absent.
    """

    parsers: dict[int, set[str]]
    counted: dict[int, set[str]]
    lengths: dict[int, str]


def together(parts: Iterable[tuple[Printed, int]]) -> Printed:
    """Combine the facts of several parts of a study; each part is given with its number of runs."""
    found, before = Printed({}, {}, {}), 0
    for part, runs in parts:
        found.parsers.update({run + before: value for run, value in part.parsers.items()})
        found.counted.update({run + before: value for run, value in part.counted.items()})
        found.lengths.update({run + before: value for run, value in part.lengths.items()})
        before += runs
    return found


def printed_of(fields: RecordArrays, runs: int) -> Printed:
    """Return the facts from the records of the runs, which are numbered from 0."""
    return Printed(_pairs(fields, runs), _counts(fields, runs), _lengths(fields, runs))


def with_programs(found: Printed, conditions: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the conditions of the runs with `parser`, `counted` and `sequence_length`.

    Programs that print results of the same run (DeepSpeed below Megatron) count as one, also in
    runs in which only one of them prints results. Existing conditions are kept.
    """
    parsers, counted = _joined(found.parsers), _joined(found.counted)
    every = []
    for run, own in enumerate(conditions):
        new = {
            "parser": parsers.get(run),
            "counted": counted.get(run),
            _LENGTH: found.lengths.get(run),
        }
        every.append({name: text for name, text in new.items() if text} | dict(own))
    return every


def _pairs(fields: RecordArrays, runs: int) -> dict[int, set[str]]:
    """Return the parsers that found results of each run."""
    chosen = np.flatnonzero((fields.metric.among(_RESULTS) >= 0) & (fields.run.codes < runs))
    key = packed(fields.run.codes[chosen], fields.parser.codes[chosen])
    first = chosen[np.unique(key, return_index=True)[1]]
    found: dict[int, set[str]] = {}
    for run, parser in zip(fields.run.codes[first], fields.parser.codes[first], strict=True):
        name = fields.parser.names[parser]
        if name not in _STATED:
            found.setdefault(int(run), set()).add(name)
    return found


def _counts(fields: RecordArrays, runs: int) -> dict[int, set[str]]:
    metric = fields.metric.among(_COUNTED)
    found: dict[int, set[str]] = {}
    for place, word in enumerate(_COUNTED.values()):
        own = (metric == place) & (fields.run.codes < runs)
        for run in np.unique(fields.run.codes[own]).tolist():
            found.setdefault(run, set()).add(word)
    return found


def _joined(found: Mapping[int, Iterable[str]]) -> dict[int, str]:
    """Return a name for each run, the same for runs that common parsers connect."""
    group: dict[str, set[str]] = {}
    for words in {tuple(sorted(own)) for own in found.values()}:
        joined = set(words).union(*(group.get(word, ()) for word in words))
        group.update(dict.fromkeys(joined, joined))
    return {run: " / ".join(sorted(group[next(iter(own))])) for run, own in found.items()}


def _lengths(fields: RecordArrays, runs: int) -> dict[int, str]:
    """Return the longest sequence of each run: a warm-up may begin with shorter ones."""
    own = np.flatnonzero((fields.metric.among([_LENGTH]) == 0) & (fields.run.codes < runs))
    found: dict[int, float] = {}
    for run, value in zip(fields.run.codes[own].tolist(), fields.value[own].tolist(), strict=True):
        if value > 0:
            found[run] = max(value, found.get(run, 0.0))
    return {run: f"{value:.0f}" for run, value in found.items()}
