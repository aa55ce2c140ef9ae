"""restarts.jsonl -> the starts of a job that ended, with the checkpoint that each one left.

A checkpoint may turn out to be damaged: the next start then loads an earlier one, and the steps in
between are lost as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.model.run import JobStart, JobStatus, Manifest, RunFolder
from hpc_train.regularfile import is_there, read_regular

CHECKPOINTS = "HPCTRAIN_CHECKPOINTS"
# Of a file with two numbers [bytes].
_LONGEST = 100


def read_starts(
    folder: RunFolder, manifest: Manifest | None, status: JobStatus | None
) -> tuple[JobStart, ...]:
    """Return the starts that ended; a line that a full disk cut off is left out."""
    if manifest is None or manifest.plan.lifecycle is None or not is_there(folder.restarts):
        return ()
    starts = []
    with suppress(OSError):
        for line in read_regular(folder.restarts).splitlines():
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                starts.append(msgspec.json.decode(line, type=JobStart))
    return with_loadable_steps(starts, _running(folder, manifest, status))


def with_loadable_steps(
    starts: Sequence[JobStart], running: JobStart | None
) -> tuple[JobStart, ...]:
    """Set the last checkpoint of each start to the one that later starts could load."""
    found: list[JobStart] = []
    after = running
    for start in reversed(starts):
        if after is not None and after.loaded is not None and after.loaded < start.step:
            found.append(
                msgspec.structs.replace(
                    start, step=after.loaded, saved=after.loaded_saved, damaged=start.step
                )
            )
        else:
            found.append(start)
        after = _earliest(start, after)
    return tuple(reversed(found))


def _earliest(start: JobStart, after: JobStart | None) -> JobStart | None:
    """Return the one of two starts that loaded the earlier checkpoint."""
    known = [one for one in (start, after) if one is not None and one.loaded is not None]
    return min(known, key=lambda one: one.loaded or 0, default=None)


def _running(folder: RunFolder, manifest: Manifest, status: JobStatus | None) -> JobStart | None:
    """Return the start that has not ended, with the checkpoint that it loaded."""
    if status is None or status.ended is not None:
        return None
    named = dict(manifest.plan.env).get(CHECKPOINTS, folder.path / "checkpoints")
    file = Path(str(named)) / "resumed"
    with suppress(OSError, ValueError):
        step, _, saved = read_regular(file, _LONGEST).decode().strip().partition(" ")
        if file.stat().st_mtime >= status.started:
            return JobStart(
                restart=status.restart_count,
                started=status.started,
                loaded=int(step),
                loaded_saved=float(saved) if saved else None,
            )
    return None
