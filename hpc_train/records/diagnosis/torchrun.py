"""torchrun's own answer to who failed first: the entry under `Root Cause` of its report."""

from __future__ import annotations

from collections.abc import Iterable

from hpc_train.model.diagnosis import Culprit
from hpc_train.records.diagnosis.root_cause import OrderedSighting
from hpc_train.records.signatures.base import Sighting

# By torchrun itself, or by the shell around a rank.
_TERMINATED = (-15, 143)


def first_of(seen: Iterable[OrderedSighting]) -> Culprit | None:
    """Return the first failure that all agents report; who was told to stop is a victim."""
    named = [_culprit(one.sighting) for one in seen if is_first(one)]
    guilty = [one for one in named if one.exit_code not in _TERMINATED] or named
    return min(guilty, key=lambda one: one.time or "", default=None)


def is_first(seen: OrderedSighting) -> bool:
    """Whether torchrun says that this failure came first."""
    return ("root", "yes") in seen.sighting.groups


def _culprit(sighting: Sighting) -> Culprit:
    groups = dict(sighting.groups)
    return Culprit(
        rank=sighting.rank,
        host=sighting.node or "",
        exit_code=int(groups["exitcode"]),
        time=sighting.time,
        said_by="torchrun",
    )
