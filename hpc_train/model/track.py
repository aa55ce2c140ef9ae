"""TrackEntry: the results of one qualification study in the history of a site."""

from itertools import pairwise
from typing import Annotated

from msgspec import Meta

from hpc_train.model.value import Value

TRACK_SCHEMA = 1
# With fewer entries no change is searched for: their noise is unknown.
LEAST_ENTRIES = 5
# The meaning of a newer schema is unknown, even if it looks alike.
TrackSchema = Annotated[int, Meta(le=TRACK_SCHEMA)]


class TrackValue(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A value of a point, and its interval over the runs of the point, if it has one."""

    value: float
    low: float | None = None
    high: float | None = None


class TrackPoint(Value, frozen=True, kw_only=True):
    """One point of the study: a series at a size.

    `work` are the facts that must match in time, such as program, model and batch; `values` are by
    their keys in the rows of a report, in the units of these keys.
    """

    series: str
    nodes: int | None
    gpus_per_node: int | None
    tasks_per_node: int | None
    ranks: int | None
    basis: str
    work: dict[str, str]
    n_ok: int
    n_submitted: int
    not_ok: str
    values: dict[str, TrackValue]


class TrackEntry(Value, frozen=True, kw_only=True):
    """One entry: a study that ran at a site from `started` on (UTC, `2026-11-21T20:45:54Z`).

    `conditions` are the recorded facts, each with all values that a run had.
    """

    schema: TrackSchema
    site: str
    study: str
    started: str
    conditions: dict[str, tuple[str, ...]]
    points: tuple[TrackPoint, ...]


class Change(Value, frozen=True, kw_only=True):
    """A change of level: `at` is the number of the first value of the new level.

    `ratio` is new/old (for times old/new), so that below 1 is worse, with a 95 % interval; `p` is
    that of the two levels.
    """

    at: int
    ratio: float
    low: float
    high: float
    p: float


class Spot(Value, frozen=True, kw_only=True):
    """The value of one point in entry number `entry`; None if no run has a result there."""

    entry: int
    value: TrackValue | None
    n_ok: int
    n_submitted: int
    not_ok: str


class Track(Value, frozen=True, kw_only=True):
    """One metric of one point over time; `spots` are in order of time.

    `sizes`: nodes, GPUs and tasks per node, ranks. `metric` is the key of the values, `speed`
    whether it is that of the basis, `higher` whether more is better. `changes` count the `known`
    spots; `newest` is the step to the newest level, from the one before the last losses in a row.
    `work` names what distinguishes series of one name that may not be compared. With
    `all_sizes`, the track is the geometric mean of the speeds of so many sizes.
    """

    site: str
    study: str
    series: str
    sizes: dict[str, int | None]
    basis: str
    work: str
    metric: str
    speed: bool
    higher: bool
    spots: tuple[Spot, ...]
    changes: tuple[Change, ...] = ()
    newest: Change | None = None
    all_sizes: int = 0

    @property
    def known(self) -> list[tuple[Spot, TrackValue]]:
        """The spots with a value, and their values."""
        return [(spot, spot.value) for spot in self.spots if spot.value is not None]

    def newest_levels(self) -> tuple[list[tuple[Spot, TrackValue]], list[tuple[Spot, TrackValue]]]:
        """Return the levels of `newest`: before it (empty without a change), and now."""
        levels = self.levels()
        if self.newest is None:
            return [], levels[-1]
        first = [change.at for change in self.changes].index(self.newest.at)
        return levels[first], levels[-1]

    def levels(self) -> list[list[tuple[Spot, TrackValue]]]:
        """Return the spots with a value, divided at the changes."""
        ends = [0, *(change.at for change in self.changes), len(self.known)]
        return [self.known[a:b] for a, b in pairwise(ends)]
