"""Records -> one DataFrame of the metrics that a scaling table uses, with their scopes checked."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from hpc_train.errors import ReportError
from hpc_train.model.record import Record

SCOPES: dict[str, frozenset[str]] = {
    "step_time": frozenset({"per_rank", "global"}),
    "samples": frozenset({"per_rank", "global"}),
    "samples_per_second": frozenset({"per_rank", "per_gpu", "global"}),
    "tokens_per_second": frozenset({"per_rank", "per_gpu", "global"}),
    "epoch_time": frozenset({"per_rank", "global"}),
    "time_to_train": frozenset({"per_rank", "global"}),
    "first_step_time": frozenset({"per_rank", "global"}),
    "loss": frozenset({"per_rank", "global"}),
    "accuracy": frozenset({"per_rank", "global"}),
    "global_batch_size": frozenset({"global"}),
    "world_size": frozenset({"global"}),
}
COLUMNS = ("run", "metric", "value", "scope", "step", "rank", "who", "parser", "steps")
# Outside these no square, sum or ratio of measurements can be trusted to stay a number.
LEAST, MOST = 1e-100, 1e100


def measurements(records: Sequence[Record]) -> pd.DataFrame:
    """Return the records that a scaling table uses, in order, each measurement once.

    The same rank's value of the same step counts once, the last one: a line may be in two log
    files, and a requeued run repeats steps. Variants (of validation, a running average) are not
    what a table compares. Where two programs state one metric of a run (DeepSpeed
    below Megatron), the one that states it more often is taken: their values are never added.
    `who` is the rank, or the file where no rank is known.

    Raises:
        ReportError: a value has a scope in which it cannot be added up.
    """
    named = [r for r in records if r.metric in SCOPES and not r.variant]
    totals = {(r.run, r.metric) for r in named if r.scope == "global"}
    # Programs that print both mean the same rate.
    used = [r for r in named if r.scope != "per_gpu" or (r.run, r.metric) not in totals]
    for record in used:
        _check_scope(record)
    frame = pd.DataFrame(
        [
            (r.run, r.metric, r.value, r.scope, r.step, r.rank, _who(r), r.parser, r.steps)
            for r in used
        ],
        columns=pd.Index(COLUMNS),
    ).astype({"value": "float64", "step": "Int64", "rank": "Int64"})
    repeated = frame.duplicated(["run", "metric", "scope", "step", "who"], keep="last")
    return _of_one_parser(frame[~(repeated & frame["step"].notna())])


def usable(values: pd.Series[float]) -> pd.Series[bool]:
    """Return which values can be calculated with: finite, and of a size that something can have."""
    sizes = values.abs()
    return (sizes == 0) | sizes.between(LEAST, MOST)


def _of_one_parser(frame: pd.DataFrame) -> pd.DataFrame:
    counts = frame.groupby(["run", "metric", "parser"], sort=False).size().reset_index(name="n")
    ranked = counts.sort_values("n", ascending=False, kind="stable")
    chosen = ranked.drop_duplicates(["run", "metric"])[["run", "metric", "parser"]]
    if len(chosen) == len(counts):
        return frame
    kept = pd.MultiIndex.from_frame(chosen)
    own: pd.DataFrame = frame[pd.MultiIndex.from_frame(frame[list(chosen.columns)]).isin(kept)]
    return own


def _who(record: Record) -> str:
    if record.scope == "global":
        return "all"
    return record.source if record.rank is None else str(record.rank)


def _check_scope(record: Record) -> None:
    if record.scope in SCOPES[record.metric]:
        return
    allowed = " or ".join(sorted(SCOPES[record.metric]))
    raise ReportError(
        f"{record.run}: {record.source}:{record.line}: {record.metric} has scope {record.scope}; "
        f"it must be {allowed}",
        "let the parser or the event state the scope in which the value was printed",
    )
