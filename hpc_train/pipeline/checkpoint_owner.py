"""The run that last used a folder of checkpoints -> whether a job may go on from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hpc_train.errors import HpcTrainError, SpecError
from hpc_train.pipeline.prepared import Prepared, PreparedPoint
from hpc_train.pipeline.run_states import runs_below
from hpc_train.plans.storage import CHECKPOINTS
from hpc_train.regularfile import read_regular
from hpc_train.runs.run_folders import is_run

# Three short lines, which the script of a job writes [bytes].
_LONGEST = 10_000


def owner_notices(prepared: Prepared) -> Iterator[str]:
    """Yield a notice for each job that would start beside the run whose checkpoints it names.

    The script of the job looks again; here is only what this host sees of the folder.

    Raises:
        SpecError: the checkpoints are those of a job of another name.
    """
    for point in prepared.points:
        named = str(point.job.value.env.get(CHECKPOINTS, ""))
        if named and point.request is None and not point.place.batch.host_list:
            yield from _notices(point, named)


def _notices(point: PreparedPoint, named: str) -> Iterator[str]:
    owner = Path(point.plan.workdir or ".", named, "owner")
    place = f"{point.job.near(f'env.{CHECKPOINTS}')}: env.{CHECKPOINTS} = {named}"
    try:
        name, run = read_regular(owner, _LONGEST).decode().split("\n")[:2]
    except (OSError, ValueError):
        return
    if name != point.plan.name:
        raise SpecError(
            f"{place} has the checkpoints of the job {name} ({run}), and this one is "
            f"{point.plan.name}: it would resume from them, and replace them",
            f"name another folder; to go on from them under this name: rm {owner}",
        )
    if _may_go_on(Path(run)) and "dependency" not in point.job.value.directives:
        yield (
            f"warning: {place} is used by {run}, which has not ended: if this job starts before "
            "its end, it is refused there; `directives: {dependency: singleton}` lets it wait"
        )


def _may_go_on(run: Path) -> bool:
    with suppress(HpcTrainError):
        return is_run(run) and any(not one.state.finished for one in runs_below(run))
    return False
