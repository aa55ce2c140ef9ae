"""Foreign files -> an error if they contain one job twice."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.base.errors import LogParseError
from hpc_train.base.file_kinds import DAMAGE, UNPACK
from hpc_train.base.files import open_regular
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.runs.run import JobState


def refuse_same_files(paths: Sequence[Path]) -> None:
    """Refuse files of records if two of them are identical.

    Raises:
        LogParseError: two files are identical; the message names both.
    """
    twice = next(((path, path) for path in paths if paths.count(path) > 1), None)
    if same := twice or _alike({str(path): (path,) for path in paths}):
        raise LogParseError(f"{same[0]} and {same[1]} are the same file", "give it once")


def refuse_same_logs(study: ExpectedStudy, files: Mapping[str, Sequence[Path]]) -> None:
    """Refuse completed runs if the logs of two of them are the same, byte for byte.

    Raises:
        LogParseError: two logs are the same; the message names both runs.
    """
    ok = JobState.COMPLETED.value
    counted = {run.run_id: files.get(run.run_id, ()) for run in study.runs if run.state == ok}
    if same := _alike(counted):
        one, other = same
        raise LogParseError(
            f"{one} and {other} are the same log, byte for byte: one job, not two repetitions",
            f"give one of them, or exclude one: --exclude '{other}=a copy of {one}'",
        )


def _alike(groups: Mapping[str, Sequence[Path]]) -> tuple[str, str] | None:
    """Return the names of the first two groups whose files have the same bytes, unpacked."""
    packed = any(path.suffix in UNPACK for paths in groups.values() for path in paths)
    sizes = {
        name: tuple(0 if packed else path.stat().st_size for path in paths)
        for name, paths in groups.items()
        if paths and all(path.is_file() for path in paths)
    }
    counts, places = Counter(sizes.values()), dict[tuple[str, ...], str]()
    for name in (name for name, size in sizes.items() if counts[size] > 1):
        if (first := places.setdefault(_digests(groups[name]), name)) != name:
            return first, name
    return None


def _digests(paths: Sequence[Path]) -> tuple[str, ...]:
    try:
        return tuple(map(_digest, paths))
    except (*DAMAGE, LogParseError):
        return tuple(map(str, paths))


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open_regular(path) as file:
        unpacked = UNPACK[path.suffix](file) if path.suffix in UNPACK else file
        while block := unpacked.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
