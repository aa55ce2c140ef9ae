"""Arrays of records -> the rows that a scaling table uses, with their scopes checked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import METRICS
from hpc_train.scaling.group_reductions import Floats, any_of
from hpc_train.scaling.record_arrays import NONE, Ints, Mask, RecordArrays, packed

GLOBAL, PER_RANK, PER_GPU = range(3)
SCOPE_NAMES = ("global", "per_rank", "per_gpu")
# Metrics whose aggregation depends on their scope, and their valid scopes.
SCOPES: dict[str, tuple[int, ...]] = {
    metric.record: tuple(map(SCOPE_NAMES.index, metric.scopes))
    for metric in METRICS
    if metric.scopes
} | {"world_size": (GLOBAL,)}
KINDS = tuple(SCOPES)
# Its programs truncate times to whole seconds, and print the rank in each epoch's line, except for
# a single process.
_BOOK = "book"


class Rows(NamedTuple):
    """Measurements, one array per field, sorted by kind, run and step (those without one last).

    `kind` is an index of KINDS or of another list of kinds, `run` an index of the study.
    `who` is a number for each rank, or for each file if the rank is unknown. `place` is the index
    of the record. `book`: printed by the programs of the book. `numbered`: the step is the position
    in the log, see `line_order`.
    """

    kind: Ints
    run: Ints
    step: Ints
    scope: Ints
    who: Ints
    rank: Ints
    parser: Ints
    steps: Ints
    place: Ints
    book: Mask
    numbered: Mask
    value: Floats

    def take(self, chosen: Mask | Ints) -> Rows:
        """Return some of the rows; a mask that leaves out none costs nothing."""
        if chosen.dtype == np.bool_:
            if chosen.all():
                return self
            chosen = np.flatnonzero(chosen)
        return Rows._make(column[chosen] for column in self)

    def of(self, kind: int) -> Rows:
        """Return the rows of one kind."""
        low, high = np.searchsorted(self.kind, [kind, kind + 1])
        return Rows._make(column[low:high] for column in self)

    def named(self, metric: str) -> Rows:
        """Return the rows of one of KINDS."""
        return self.of(KINDS.index(metric))

    @property
    def stepped(self) -> Mask:
        """Which rows name a step."""
        known: Mask = self.step != NONE
        return known


def metric_kinds(fields: RecordArrays) -> Ints:
    """Return the place of each record in KINDS; -1 for others, variants and unknown scopes.

    Variants (of validation, a running average) are not compared in a table.
    """
    plain = (fields.variant.among([""]) >= 0) & (fields.scope.among(["unknown"]) < 0)
    return np.where(plain, fields.metric.among(KINDS), -1)


def stated(fields: RecordArrays, kinds: Ints) -> Rows:
    """Return the records of a kind from 0 on, sorted by kind only.

    A value per GPU is dropped if there is one of the whole job, because programs that print both
    mean the same quantity.
    """
    places = np.flatnonzero(kinds >= 0)
    # Within one kind most logs are in order already, and sorting them costs nothing more.
    places = places[np.argsort(kinds[places].astype(np.int16), kind="stable")]
    rows = _rows(fields.take(places), kinds[places], places)
    if not (rows.scope == PER_GPU).any():
        return rows
    group = packed(rows.kind, rows.run)
    whole = any_of(rows.scope == GLOBAL, group, int(group.max()) + 1)
    return rows.take((rows.scope != PER_GPU) | ~whole[group])


def once(rows: Rows) -> Rows:
    """Return each measurement once, sorted.

    The same rank's value of the same step counts once, the last one: a line may be in two log
    files, and a requeued run repeats steps. If two programs print one metric of a run (DeepSpeed
    below Megatron), the one that prints it more often is used: their values are never added.
    """
    step = _ordinal(rows.step)
    twice = rows.stepped
    if twice.any():
        key = pd.Series(packed(rows.kind, rows.run, rows.scope, step, rows.who))
        twice &= key.duplicated(keep="last").to_numpy()
    order = np.argsort(packed(rows.kind, rows.run, step), kind="stable")
    order = order[~twice[order]] if twice.any() else order
    in_order = len(order) == len(twice) and bool((order[1:] > order[:-1]).all())
    return _of_one_parser(rows if in_order else rows.take(order))


def check_scopes(fields: RecordArrays, rows: Rows) -> None:
    """Refuse a value of KINDS whose scope it cannot be added up in.

    Raises:
        ReportError: the first such value.
    """
    allowed = np.zeros((len(KINDS), len(SCOPE_NAMES) + 1), dtype=bool)
    for kind, scopes in enumerate(SCOPES.values()):
        allowed[kind, list(scopes)] = True
    wrong = rows.place[~allowed[rows.kind, rows.scope]]
    if not len(wrong):
        return
    at = int(wrong.min())
    run, source, metric, scope = (
        text.names[text.codes[at]] if text.codes[at] >= 0 else "none"
        for text in (fields.run, fields.source, fields.metric, fields.scope)
    )
    names = sorted(SCOPE_NAMES[code] for code in SCOPES[metric])
    raise ReportError(
        f"{run}: {source}:{fields.line[at]}: {metric} has scope {scope}; "
        f"it must be {' or '.join(names)}",
        "let the parser or the event state the scope in which the value was printed",
    )


def _rows(fields: RecordArrays, kinds: Ints, places: Ints) -> Rows:
    scope = fields.scope.among(SCOPE_NAMES)
    files = -1 - fields.source.codes.astype(np.int64)
    return Rows(
        kind=kinds,
        run=fields.run.codes.astype(np.int64),
        step=fields.step,
        scope=scope,
        who=np.where(scope == GLOBAL, 0, np.where(fields.rank == NONE, files, 1 + fields.rank)),
        rank=fields.rank,
        parser=fields.parser.codes.astype(np.int64),
        steps=fields.steps,
        place=places,
        book=fields.parser.among([_BOOK]) == 0,
        numbered=np.zeros(len(kinds), dtype=np.bool_),
        value=fields.value,
    )


def _ordinal(step: Ints) -> Ints:
    """Return keys that put values without a step behind all others."""
    if not len(step) or step.min() != NONE:
        return step
    return np.where(step == NONE, step.max() + 1, step)


def _of_one_parser(rows: Rows) -> Rows:
    if not len(rows.parser) or (rows.parser == rows.parser[0]).all():
        return rows
    own = pd.DataFrame({name: getattr(rows, name) for name in ("kind", "run", "parser", "place")})
    each = own.groupby(["kind", "run", "parser"])["place"].agg(["size", "min"]).reset_index()
    # If both print it equally often, the first one.
    best = each.sort_values(["size", "min"], ascending=[False, True]).drop_duplicates(
        ["kind", "run"]
    )
    chosen = own.merge(best[["kind", "run", "parser"]].assign(best=True), how="left")["best"]
    return rows.take(chosen.notna().to_numpy(dtype=bool))
