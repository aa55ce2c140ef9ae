"""Conditions of runs: the recorded fields, and the differences between runs of a series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError, nearest
from hpc_train.base.metrics import RESULTS
from hpc_train.runs.expected_runs import ExpectedRun
from hpc_train.scaling.group_reductions import NAN, Ints, levels_of

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
    seen = {f for own in runs["conditions"] if isinstance(own, Mapping) for f in own}
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


def texts(runs: pd.DataFrame, field: str) -> list[str | None]:
    """Return the recorded value of a field for each run, None if there is none."""
    return [
        str(own[field]) if isinstance(own, Mapping) and own.get(field) not in (None, "") else None
        for own in runs["conditions"]
    ]


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
        for own in runs["conditions"].iloc[places]:
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


def conditions_of(records: pd.DataFrame, runs: Sequence[ExpectedRun]) -> list[dict[str, str]]:
    """Return the recorded conditions of each run, updated with those in its log: NAME=VALUE.

    The records are `numbered` as `runs` are. If the ranks of a run print different values, all are
    listed: `2.4 / 2.5`. `parameters` are those that a log counts, the sum of the parts of its
    model, unless the runs state them.
    """
    found = [dict(run.conditions) for run in runs]
    own = records[records["run"] >= 0]
    parts = own[own["metric"] == "parameters"].drop_duplicates(["run", "variant"], keep="last")
    parts = parts[(parts["value"] > 0) & (parts["value"] < np.inf)]
    for one, size in parts.groupby("run")["value"].sum().items():
        found[int(str(one))].setdefault("parameters", f"{size:.0f}")
    printed: dict[tuple[int, str], set[str]] = {}
    pairs = own.loc[own["metric"] == "condition", ["run", "variant"]].drop_duplicates()
    for one, text in pairs.itertuples(index=False):
        name, equals, value = text.partition("=")
        if equals and name:
            printed.setdefault((one, name), set()).add(value)
    for (one, name), values in printed.items():
        found[one][name] = " / ".join(sorted(values))
    return found


def with_programs(
    records: pd.DataFrame, conditions: Sequence[Mapping[str, str]], lengths: pd.Series[float]
) -> list[dict[str, str]]:
    """Return the conditions of the runs with `parser`, `counted` and `sequence_length`.

    Programs that print results of the same run (DeepSpeed below Megatron) count as one, also in
    runs in which only one of them prints results. Existing conditions are kept.
    """
    own = records.loc[records["run"] >= 0, ["run", "parser", "metric"]].drop_duplicates()
    parser, metric = own["parser"].astype(object), own["metric"].astype(object)
    parser = parser.where(metric.isin(_RESULTS) & ~parser.isin(_STATED))
    columns = []
    for words in (parser, metric.map(_COUNTED)):
        found: list[set[str]] = [set() for _ in conditions]
        for run, word in zip(own["run"], words, strict=True):
            if isinstance(word, str):
                found[run].add(word)
        columns.append(_joined(found))
    whole = []
    for run, (given, parsers, counted) in enumerate(zip(conditions, *columns, strict=True)):
        length = f"{lengths[run]:.0f}" if run in lengths.index else ""
        new = {"parser": parsers, "counted": counted, _LENGTH: length}
        whole.append({name: text for name, text in new.items() if text} | dict(given))
    return whole


def _joined(found: Sequence[set[str]]) -> list[str]:
    """Return a name for each set, the same for sets that common words connect."""
    group: dict[str, set[str]] = {}
    for words in {frozenset(own): own for own in found}.values():
        joined = set(words).union(*(group.get(word, ()) for word in words))
        group.update(dict.fromkeys(joined, joined))
    return [" / ".join(sorted(group[next(iter(own))])) if own else "" for own in found]


def sequence_lengths(records: pd.DataFrame) -> pd.Series[float]:
    """Return the longest sequence of each run: a warm-up may begin with shorter ones."""
    own = records[(records["metric"] == _LENGTH) & (records["run"] >= 0) & (records["value"] > 0)]
    found: pd.Series[float] = own.groupby("run")["value"].max()
    return found
