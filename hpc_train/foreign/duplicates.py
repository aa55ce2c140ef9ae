"""Foreign files -> an error if they contain one job twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hpc_train.base.errors import LogParseError
from hpc_train.base.files import sha256_of
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.runs.run import JobState


def refuse_same_files(paths: Sequence[Path]) -> None:
    """Refuse files of records if two of them are identical.

    Raises:
        LogParseError: two files are identical; the message names both.
    """
    for same in _alike({str(path): (path,) for path in paths}, paths):
        one, other = same if len(same) > 1 else same * 2
        raise LogParseError(f"{one} and {other} are the same file", "give it once")


def refuse_same_logs(study: ExpectedStudy, files: Mapping[str, Sequence[Path]]) -> None:
    """Refuse completed runs if the logs of two of them are the same, byte for byte.

    Raises:
        LogParseError: two logs are the same; the message names both runs.
    """
    ok = JobState.COMPLETED.value
    if not files:
        return
    counted = {run.run_id: files.get(run.run_id, ()) for run in study.runs if run.state == ok}
    for one, other in _alike(counted):
        raise LogParseError(
            f"{one} and {other} are the same log, byte for byte: one job, not two repetitions",
            f"give one of them, or exclude one: --exclude '{other}=a copy of {one}'",
        )


def _alike(
    groups: Mapping[str, Sequence[Path]], named: Sequence[Path] = ()
) -> Iterable[tuple[str, ...]]:
    """Yield the names of groups whose files have the same bytes, and paths that are named twice."""
    yield from ((str(path),) for path in dict.fromkeys(named) if named.count(path) > 1)
    sizes: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, paths in groups.items():
        if paths and all(path.is_file() for path in paths):
            sizes[tuple(path.stat().st_size for path in paths)].append(name)
    for names in sizes.values():
        places: dict[tuple[str, ...], str] = {}
        for name in names if len(names) > 1 else ():
            first = places.setdefault(_digests(groups[name]), name)
            if first != name:
                yield first, name


def _digests(paths: Sequence[Path]) -> tuple[str, ...]:
    try:
        return tuple(map(sha256_of, paths))
    except OSError:
        return tuple(map(str, paths))
