"""A profile and all that it extends: one document; the child's values replace the parents'."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from hpc_train.base.errors import SiteProfileError, nearest, newer_version
from hpc_train.base.yamlfile import read
from hpc_train.sites.merge import Part, check_locks, overlay
from hpc_train.sites.search import (
    files_named,
    label_of,
    layer_of,
    profile_files,
    system_files,
    without_links,
)
from hpc_train.sites.site import SCHEMA

LONGEST = 8


def read_profile(path: Path) -> Part:
    """Read a profile and what it extends, and check the keys that the administrator has locked.

    Raises:
        SiteProfileError: a file is invalid, the parent is missing, a profile extends itself, or a
        locked value differs.
    """
    chain = lineage(path)
    whole = _laid(chain)
    if layer_of(path) != "system":
        names = dict.fromkeys(file.path.stem for file in chain)
        locking = [file for name in names for file in system_files(name)]
        check_locks(whole, [_laid(lineage(file), locked=True) for file in locking])
    return whole


def _laid(chain: Sequence[File], *, locked: bool = False) -> Part:
    """Merge the files; optionally keep the locks of the first one."""
    whole = chain[-1].part
    for file in reversed(chain[:-1]):
        whole = overlay(whole, file.part)
    if locked and "locked" in chain[0].part.values:
        origins = {**chain[0].part.origins, **whole.origins}
        return Part({**whole.values, "locked": chain[0].part.values["locked"]}, origins)
    return whole


class File(NamedTuple):
    """A file of a profile, as it is written."""

    path: Path
    part: Part


def lineage(path: Path) -> tuple[File, ...]:
    """Return the file and those that it extends, the child first.

    Raises:
        SiteProfileError: the parent is missing, or a profile extends itself.
    """
    chain = [_read(path)]
    while isinstance(parent := chain[-1].part.values.get("extends"), str):
        file = _parent(parent, [file.path for file in chain], chain[-1].part)
        chain.append(_read_parent(file, file.stat().st_mtime_ns))
    return tuple(chain)


def _parent(name: str, chain: list[Path], child: Part) -> Path:
    """A profile may extend one with the same name further down the path, such as a shipped one."""
    place = child.origins["extends"]
    seen = set(map(without_links, chain))
    if len(chain) > LONGEST:
        raise SiteProfileError(f"{place}: extends: more than {LONGEST} files")
    candidates = list(files_named(name))
    if name == chain[-1].stem:
        candidates = _after(chain[-1], candidates)
    if not candidates:
        if name == chain[-1].stem:
            raise SiteProfileError(
                f"{place}: extends: {name!r} is this file, and there is no other of that name "
                "further down the search path",
                "hpctrain site list",
            )
        known = [file.stem for file in profile_files()]
        raise SiteProfileError(
            f"{place}: extends: no profile or family {name!r}{nearest(name, known)}",
            "hpctrain site list",
        )
    if without_links(candidates[0]) in seen:
        names = " -> ".join([*(file.stem for file in chain), name])
        raise SiteProfileError(f"{place}: extends is circular: {names}")
    return candidates[0]


def _after(path: Path, candidates: list[Path]) -> list[Path]:
    places = [*map(without_links, candidates)]
    here = without_links(path)
    return candidates[places.index(here) + 1 :] if here in places else candidates


@lru_cache(maxsize=64)
def _read_parent(path: Path, _changed_ns: int) -> File:
    """Read a parent; cached, because families have many children."""
    return _read(path)


def _read(path: Path) -> File:
    document = read(path, SiteProfileError, label_of(path))
    values = document.data
    if not isinstance(values, dict):
        raise SiteProfileError(f"{document.label}: a profile is a mapping of keys to values")
    _check_schema(values.get("schema"), document.origins)
    return File(path, Part(values, document.origins))


def _check_schema(schema: Any, origins: dict[str, str]) -> None:
    """Check the schema first: a newer format has keys that would be reported as unknown."""
    if isinstance(schema, int) and schema > SCHEMA:
        raise SiteProfileError(*newer_version(origins["schema"], schema, SCHEMA))
