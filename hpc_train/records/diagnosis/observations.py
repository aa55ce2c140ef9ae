"""Observations in the logs of one job, before the diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hpc_train.model.value import Value
from hpc_train.records.diagnosis.collectives import Progress, Wait
from hpc_train.records.diagnosis.end_markers import Ending
from hpc_train.records.diagnosis.root_cause import OrderedSighting

# The kind of a start that repeats one of the first lines of its log.
AGAIN = "again"


class Start(Value, frozen=True, kw_only=True):
    """A line that is printed once, when a job starts; a `sure` start needs no other evidence."""

    kind: str
    line: int
    sure: bool = False


class Observed(Value, frozen=True, kw_only=True):
    """Observations in the logs of one job, ordered by file and line; `failed` could not be read.

    `endings` have the number of their file. `counts` is the number of sightings of each signature;
    `seen` has the first ones. `starts` are the lines by which an attempt may begin; `first_line`
    is that of the attempt, if it is one of several.
    """

    sources: tuple[str, ...] = ()
    seen: tuple[OrderedSighting, ...] = ()
    endings: tuple[tuple[int, Ending], ...] = ()
    waits: tuple[Wait, ...] = ()
    progress: tuple[Progress, ...] = ()
    counts: Mapping[str, int] = MappingProxyType({})
    failed: tuple[str, ...] = ()
    starts: tuple[tuple[int, Start], ...] = ()
    first_line: int = 1
