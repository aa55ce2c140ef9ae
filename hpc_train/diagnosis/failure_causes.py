"""Failed runs -> the first line of their diagnosis, kept in the run folder.

`status` of a thousand runs may not read all of their logs each time: a kept line is used while the
logs are unchanged, a large log is left to `hpctrain diagnose`, and what takes longer than the limit
to the next call.
"""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.base.errors import LogParseError
from hpc_train.base.files import files_in
from hpc_train.base.plain_text import plain
from hpc_train.base.value import Value
from hpc_train.diagnosis.diagnosis import Diagnosis
from hpc_train.jobs.job import RESUBMIT
from hpc_train.runs.json_files import default_results, to_json
from hpc_train.runs.log_result_cache import read_cache, write_cache
from hpc_train.runs.run import Run, RunFolder
from hpc_train.runs.run_table import explained
from hpc_train.runs.submission import JobState
from hpc_train.version import VERSION

FILE = "diagnosis.json"
LIMIT_S = 2.0
# Bytes of logs; what opening a file costs, in bytes that are read meanwhile.
_LARGEST, _OPENED = 64 << 20, 6 << 10
_LONGEST = 160
_MOST = 5
# The other states without a result state their reason, and no program failed.
_DIAGNOSED = (JobState.FAILED, JobState.OUT_OF_MEMORY, JobState.TIMEOUT)
# They repeat the exit code of the recorded problem; the end of the log says more.
_EXIT_CODE_ONLY = ("unknown_failure", "torchrun_child_failed_rank", "torchrun_process_failed")


class Cause(Value, frozen=True, kw_only=True):
    """Why a run failed, in one line, and on which rank, if that is known.

    `stamp` is a digest of the files that it was read from.
    """

    stamp: str
    text: str = ""
    rank: int | None = None


_decode = msgspec.json.Decoder(Cause).decode


def causes(runs: Iterable[Run], limit_s: float = LIMIT_S) -> dict[str, str]:
    """Return the causes of failed runs by run id, without those that take too long to find."""
    until = time.monotonic() + limit_s
    failed = (run for run in runs if run.state in _DIAGNOSED and run.manifest is not None)
    found = ((run, _cause(run, until)) for run in failed)
    return {run.folder.run_id: one.text for run, one in found if one is not None and one.text}


def explain(runs: Sequence[Run], home: Path, say: Callable[[str], None]) -> None:
    """Say why runs failed, before they are submitted again."""
    found = causes(runs)
    shown = [run for run in runs if run.folder.run_id in found][:_MOST]
    for run in shown:
        say(f"{run.folder.run_id} {run.state.value}: {explained(run, found)}")
    if len(found) > len(shown):
        say(f"and {len(found) - len(shown)} more runs")
    if found:
        say(next_step(runs, home))


def next_step(runs: Iterable[Run], home: Path) -> str:
    """Return the command that explains the failures of these runs; empty if none failed."""
    failed = [run.folder.path for run in runs if run.state in _DIAGNOSED]
    if not failed:
        return ""
    folder = failed[0] if len(failed) == 1 else home
    usual = default_results() in (folder.parent, folder.parent.parent)
    return f"next: hpctrain diagnose {folder.name if usual else shlex.quote(str(folder))}"


def failed_rank(run: Run) -> int | None:
    """Return the rank that failed first, from the status file or the diagnosis."""
    if run.state not in _DIAGNOSED:
        return None
    failure = run.status.failure if run.status is not None else None
    if failure is not None:
        return failure.rank
    kept = _cause(run, time.monotonic() + LIMIT_S) if run.manifest is not None else None
    return kept.rank if kept is not None else None


def _cause(run: Run, until: float) -> Cause | None:
    stamp, size = _stamp(run)
    kept = None
    with suppress(LogParseError):
        kept = read_cache(run.folder.path / FILE, _decode)
    if kept is not None and kept.stamp == stamp:
        return kept
    if size > _LARGEST or time.monotonic() > until:
        return None
    found = _read(run, stamp)
    write_cache(run.folder.path / FILE, to_json(found))
    return found


def _read(run: Run, stamp: str) -> Cause:
    # Its signatures are slow to load, and most commands find the kept lines.
    from hpc_train.diagnosis.diagnose_runs import diagnosis_of

    try:
        diagnosis = diagnosis_of(run)
    except LogParseError:
        return Cause(stamp=stamp)
    root, first = diagnosis.root, diagnosis.first_failure
    rank = first.rank if first is not None else None
    if rank is None and root is not None and root.evidence:
        rank = root.evidence[0].rank
    return Cause(stamp=stamp, text=_first_line(diagnosis, asked_again=_asked_again(run)), rank=rank)


def _asked_again(run: Run) -> bool:
    """Whether its ranks saved and asked for another start: the last line of one is no cause."""
    failure = run.status.failure if run.status is not None else None
    return failure is not None and failure.exit_code == RESUBMIT


def _first_line(diagnosis: Diagnosis, *, asked_again: bool) -> str:
    """Return the root cause or, if it is unknown, the last line of the rank that failed first."""
    root = diagnosis.root
    if root is not None and root.id not in _EXIT_CODE_ONLY:
        # Evidence of the scheduler or the job script is in the recorded problem already.
        return _short(root.title) if root.evidence and root.evidence[0].line else ""
    if asked_again:
        return ""
    last = next((one for one in reversed(diagnosis.last_lines) if one.text.strip()), None)
    return _short(f"last line of {last.source}: {last.text.strip()}") if last else ""


def _short(text: str) -> str:
    line = " ".join(plain(text).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _stamp(run: Run) -> tuple[str, int]:
    """Return a digest of what a diagnosis depends on, and what reading the logs costs [bytes]."""
    files = sorted(_sizes(run.folder))
    facts = (VERSION, run.state.value, run.problem, str(run.status), *map(str, files))
    digest = hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()
    return digest, sum(size + _OPENED for _, size, _ in files)


def _sizes(folder: RunFolder) -> Iterator[tuple[str, int, int]]:
    for path in files_in(folder.logs):
        with suppress(OSError):
            found = path.stat()
            yield path.name, found.st_size, found.st_mtime_ns
