"""Conditions of runs: the recorded fields, and the differences between runs of a series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.errors import ReportError, nearest
from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.metrics import RESULTS
from hpc_train.model.run_columns import RunColumns
from hpc_train.model.shared_objects import each_once
from hpc_train.tables.group_reductions import NAN, levels_of, starts
from hpc_train.tables.record_arrays import Ints, RecordArrays
from hpc_train.tables.row_codes import codes, packed
from hpc_train.tables.shared_objects import Shared, shared
from hpc_train.tables.word_sets import WordSets, joined_sets, word_sets

# The most informative first: a series is named after the first field that differs.
FIELDS = (
    "parser", "counted", "model", "parameters", "data", "sequence_length", "precision", "layout",
    "tensor_parallel", "pipeline_parallel", "torch", "cuda", "nccl", "nccl2", "nccl_plugin",
    "partition", "gpu", "container", "commit", "dirty", "command", "template", "modules",
)  # fmt: skip
# Padding of the vocabulary grows with tensor parallelism.
_NEAR = {"parameters": 0.05}
_AXIS = "axis."
# Results that are compared; a sample is a sequence for one program, an image for another.
_RESULTS = tuple(metric.record for metric in RESULTS)
_COUNTED = {"samples": "samples"} | {
    metric.record: metric.basis.item for metric in RESULTS if metric.basis and metric.basis.is_rate
}
# Values stated by a user have no program.
_STATED = frozenset({"table", "points"})
_LENGTH = "sequence_length"
# A run with it is flagged, not put into another series.
_FLAGGED = frozenset({"throttled"})


def fields_of(runs: pd.DataFrame) -> tuple[str, ...]:
    """Return the fields that at least one run recorded, the usual ones first."""
    if "conditions" not in runs:
        return ()
    every = [own for _, own in each_once(runs["conditions"]) if isinstance(own, Mapping)]
    seen = {field for own in every for field in own}
    seen -= _FLAGGED
    usual = [field for field in FIELDS if field in seen]
    return (*usual, *sorted(seen.difference(FIELDS)))


def compared(runs: pd.DataFrame, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that must match: all but those that are allowed to differ or are axes.

    An axis sets a field whose name is the axis' own or its last word: `training.precision`.

    Raises:
        ReportError: a field that is allowed to differ does not exist.
    """
    fields = fields_of(runs)
    known = dict.fromkeys((*FIELDS, *fields))
    for name in allowed:
        if name not in known:
            raise ReportError(
                f"--allow-mixed {name}: no such field{nearest(name, known)}",
                f"allowed: {', '.join(known)}",
            )
    axes = [str(name).removeprefix(_AXIS) for name in runs if str(name).startswith(_AXIS)]
    free = {*allowed, *axes, *(axis.rpartition(".")[2] for axis in axes)}
    return tuple(field for field in fields if field not in free)


def texts(runs: pd.DataFrame, field: str) -> Shared[str | None]:
    """Return the recorded value of a field for each run, None if there is none."""
    conditions = shared(runs["conditions"])
    found = [
        str(own[field]) if isinstance(own, Mapping) and own.get(field) not in (None, "") else None
        for own in conditions.objects
    ]
    return Shared(found, conditions.codes)


def levels(field: str, values: Sequence[str | None]) -> Ints:
    """Number the different values of a field; -1 if there is none.

    Numbers of parameters count as the same within 5 %.
    """
    near = _NEAR.get(field)
    if near is not None:
        sizes = np.array([_number(value) for value in values], dtype=np.float64)
        if np.isnan(sizes).sum() == list(values).count(None):
            return levels_of(sizes, near)
    return pd.factorize(np.array(values, dtype=object))[0].astype(np.int64)


def merged(runs: pd.DataFrame, places: Ints, fields: Sequence[str]) -> dict[str, str]:
    """Return the first recorded value of each field among some runs."""
    found: dict[str, str] = {}
    if fields:
        for own in shared(runs["conditions"].iloc[places]).objects:
            if isinstance(own, Mapping):
                found = {**own, **found}
    return {field: str(found[field]) for field in fields if found.get(field) not in (None, "")}


def difference(
    own: Mapping[str, str], other: Mapping[str, str], fields: Sequence[str]
) -> str | None:
    """Return the first field that both sets of conditions contain with different values."""
    for field in fields:
        if field in own and field in other:
            one, two = levels(field, (own[field], other[field]))
            if one != two:
                return field
    return None


def _number(text: str | None) -> float:
    try:
        value = float(text or NAN)
    except ValueError:
        return NAN
    return value if value > 0 else NAN


def conditions_of(fields: RecordArrays, runs: Sequence[ExpectedRun]) -> Shared[dict[str, str]]:
    """Return the recorded conditions of each run, updated with those in its log: NAME=VALUE.

    The runs of the records are numbered as `runs` are. If the ranks of a run print different
    values, all are listed: `2.4 / 2.5`. `parameters` are those that a log counts, unless the runs
    state them.
    """
    columns = RunColumns.of(runs)
    # Runs with the same conditions share a dict, unless their logs have more.
    kind = np.asarray(columns.kind, dtype=np.int64)
    found = Shared([run.conditions for run in columns.kinds], kind).distinct()
    sizes = _parameters(fields, len(runs)).items()
    found = found.changed({i: {"parameters": f"{size:.0f}"} | found.at(i) for i, size in sizes})
    if "condition" not in fields.metric.names:
        return found
    run = fields.run.codes
    chosen = np.flatnonzero((fields.metric.among(["condition"]) == 0) & (run < len(runs)))
    key = packed(run[chosen], fields.variant.codes[chosen])
    chosen = chosen[np.argsort(key, kind="stable")]
    chosen = chosen[starts(run[chosen], fields.variant.codes[chosen])]
    printed: dict[tuple[int, str], set[str]] = {}
    for one, code in zip(run[chosen].tolist(), fields.variant.codes[chosen].tolist(), strict=True):
        name, equals, value = fields.variant.names[code].partition("=")
        if equals and name:
            printed.setdefault((one, name), set()).add(value)
    own: dict[int, dict[str, str]] = {}
    for (one, name), values in printed.items():
        own.setdefault(one, dict(found.at(one)))[name] = " / ".join(sorted(values))
    return found.changed(own)


def _parameters(fields: RecordArrays, runs: int) -> dict[int, float]:
    """Return the size of each run's model: the sum of its parts, each counted once."""
    run = fields.run.codes
    chosen = np.flatnonzero((fields.metric.among(["parameters"]) == 0) & (run < runs))
    names = zip(run[chosen].tolist(), fields.variant.codes[chosen].tolist(), strict=True)
    parts = dict(zip(names, fields.value[chosen].tolist(), strict=True))
    found: dict[int, float] = {}
    for (one, _), count in parts.items():
        if 0 < count < np.inf:
            found[one] = found.get(one, 0.0) + count
    return found


class Printed(NamedTuple):
    """Facts from the records: parsers and counted units of each run, longest sequence by number.

    Runs without a printed length are absent from `lengths`.
    """

    parsers: WordSets
    counted: WordSets
    lengths: dict[int, str]


def together(parts: Iterable[tuple[Printed, int]]) -> Printed:
    """Combine the facts of several parts of a study; each part is given with its number of runs."""
    every = list(parts)
    lengths, before = dict[int, str](), 0
    for part, runs in every:
        lengths.update({run + before: value for run, value in part.lengths.items()})
        before += runs
    parsers, counted = ([getattr(one, name) for one, _ in every] for name in ("parsers", "counted"))
    return Printed(joined_sets(parsers), joined_sets(counted), lengths)


def printed_of(fields: RecordArrays, runs: int) -> Printed:
    """Return the facts from the records of the runs, which are numbered from 0."""
    return Printed(_pairs(fields, runs), _counts(fields, runs), _lengths(fields, runs))


def with_programs(found: Printed, conditions: Shared[Mapping[str, str]]) -> Shared[dict[str, str]]:
    """Return the conditions of the runs with `parser`, `counted` and `sequence_length`.

    Programs that print results of the same run (DeepSpeed below Megatron) count as one, also in
    runs in which only one of them prints results. Existing conditions are kept.
    """
    parsers, counted = _joined(found.parsers.sets), _joined(found.counted.sets)
    numbers = [conditions.codes, found.parsers.codes, found.counted.codes]
    key = codes([pd.Series(number) for number in numbers])
    first = np.flatnonzero(~pd.Series(key).duplicated().to_numpy())
    whole: list[dict[str, str]] = []
    for of, parser, count in zip(*(number[first].tolist() for number in numbers), strict=True):
        new = {"parser": parsers[parser], "counted": counted[count]}
        known = {name: text for name, text in new.items() if text}
        whole.append({**known, **conditions.objects[of]})
    every = Shared(whole, key)
    stated = {run: every.at(run) for run in found.lengths if _LENGTH not in every.at(run)}
    return every.changed({run: {**own, _LENGTH: found.lengths[run]} for run, own in stated.items()})


def _pairs(fields: RecordArrays, runs: int) -> WordSets:
    """Return the parsers that found results of each run."""
    result = fields.metric.among(_RESULTS) >= 0
    names = [name for name in fields.parser.names if name not in _STATED]
    return word_sets(
        fields.run.codes, np.where(result, fields.parser.among(names), -1), names, runs
    )


def _counts(fields: RecordArrays, runs: int) -> WordSets:
    words = list(dict.fromkeys(_COUNTED.values()))
    word = np.array([*map(words.index, _COUNTED.values()), -1], dtype=np.int64)
    return word_sets(fields.run.codes, word[fields.metric.among(_COUNTED)], words, runs)


def _joined(found: Sequence[frozenset[str]]) -> list[str]:
    """Return a name for each set, the same for sets that common words connect."""
    group: dict[str, set[str]] = {}
    for words in found:
        joined = set(words).union(*(group.get(word, ()) for word in words))
        group.update(dict.fromkeys(joined, joined))
    return [" / ".join(sorted(group[next(iter(own))])) if own else "" for own in found]


def _lengths(fields: RecordArrays, runs: int) -> dict[int, str]:
    """Return the longest sequence of each run: a warm-up may begin with shorter ones."""
    own = np.flatnonzero((fields.metric.among([_LENGTH]) == 0) & (fields.run.codes < runs))
    found: dict[int, float] = {}
    for run, value in zip(fields.run.codes[own].tolist(), fields.value[own].tolist(), strict=True):
        if value > 0:
            found[run] = max(value, found.get(run, 0.0))
    return {run: f"{value:.0f}" for run, value in found.items()}
