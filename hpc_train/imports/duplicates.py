"""Foreign results -> an error if they contain one job twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hpc_train.errors import LogParseError
from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.submission import JobState
from hpc_train.regularfile import sha256_of

# Two jobs with 2 % noise agree in six digits once in 10,000 pairs, and in two digits often.
_DIGITS = 6


class RowContent(NamedTuple):
    """One row of a table as it counts: texts and values by column, values in hpctrain's units.

    `name` is the name of its run, and `digits` the significant digits of its most precise result.
    """

    place: str
    name: str
    digits: int
    cells: tuple[tuple[str, str | float], ...]


def refuse_same_rows(rows: Iterable[RowContent], places: dict[Any, str]) -> None:
    """Refuse rows that hold the same values, in one table or in several, however they are written.

    Rows with different names are the same job if their results agree in six digits or more.
    `places` has the place of each row that was read before.

    Raises:
        LogParseError: two rows are the same; the message names both places.
    """
    for row in rows:
        keys = [(row.name, row.cells), *([row.cells] if row.digits >= _DIGITS else [])]
        first = [places.setdefault(key, row.place) for key in keys]
        other = next((place for place in first if place != row.place), None)
        if other:
            raise LogParseError(
                f"{row.place}: the same row as {other}: one job, not two repetitions",
                "remove it or, if they are two jobs, distinguish them by a column `repetition`",
            )


def significant_digits(text: str) -> int:
    """Return the number of significant digits of a number, without zeros at its end."""
    mantissa = text.lower().partition("e")[0]
    return len("".join(filter(str.isdigit, mantissa)).strip("0"))


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
