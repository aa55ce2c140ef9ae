"""Records -> which program printed the results of each run, and what it counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from hpc_train.model.metrics import RESULTS
from hpc_train.tables.columns import Columns
from hpc_train.tables.groups import packed

# Results that a ratio is made of; a sample of one program is a sequence, of another an image.
_RESULTS = tuple(metric.record for metric in RESULTS)
_COUNTED = {"samples": "samples"} | {
    metric.record: metric.basis.item for metric in RESULTS if metric.basis and metric.basis.is_rate
}
# What a person states has no program.
_STATED = frozenset({"table", "points"})
_LENGTH = "sequence_length"


def with_programs(fields: Columns, said: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the conditions of the runs with `parser`, `counted` and `sequence_length`.

    The runs of the records are numbered as `said` is. Programs that state results of one and the
    same run (DeepSpeed below Megatron) are one, also in runs where one of them is silent. What is
    said already stays.
    """
    runs = len(said)
    printed = _joined(_pairs(fields, runs))
    counted = _joined(_counts(fields, runs))
    lengths = _lengths(fields, runs)
    found = []
    for run, own in enumerate(said):
        new = {"parser": printed.get(run), "counted": counted.get(run), _LENGTH: lengths.get(run)}
        found.append({name: text for name, text in new.items() if text} | dict(own))
    return found


def _pairs(fields: Columns, runs: int) -> dict[int, set[str]]:
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


def _counts(fields: Columns, runs: int) -> dict[int, set[str]]:
    metric = fields.metric.among(_COUNTED)
    found: dict[int, set[str]] = {}
    for place, word in enumerate(_COUNTED.values()):
        own = (metric == place) & (fields.run.codes < runs)
        for run in np.unique(fields.run.codes[own]).tolist():
            found.setdefault(run, set()).add(word)
    return found


def _joined(found: Mapping[int, Iterable[str]]) -> dict[int, str]:
    """Return a name for each run, the same for runs that a chain of common words connects."""
    group: dict[str, set[str]] = {}
    for words in {tuple(sorted(own)) for own in found.values()}:
        joined = set(words).union(*(group.get(word, ()) for word in words))
        group.update(dict.fromkeys(joined, joined))
    return {run: " / ".join(sorted(group[next(iter(own))])) for run, own in found.items()}


def _lengths(fields: Columns, runs: int) -> dict[int, str]:
    """Return the longest sequence of each run: a warm-up may begin with shorter ones."""
    own = np.flatnonzero((fields.metric.among([_LENGTH]) == 0) & (fields.run.codes < runs))
    found: dict[int, float] = {}
    for run, value in zip(fields.run.codes[own].tolist(), fields.value[own].tolist(), strict=True):
        if value > 0:
            found[run] = max(value, found.get(run, 0.0))
    return {run: f"{value:.0f}" for run, value in found.items()}
