"""A profile with all that it extends: one document, the child's words over the parents'."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from hpc_train.errors import SiteProfileError, nearest
from hpc_train.model.site import SCHEMA
from hpc_train.sites.overlay import Part, overlay
from hpc_train.sites.search import files_named, label_of, profile_files, system_files
from hpc_train.yamlfile import lookup, read

LONGEST = 8


def read_profile(path: Path) -> Part:
    """Read a profile and what it extends, and hold it to what the system has locked.

    Raises:
        SiteProfileError: a file is wrong, the parent is missing, a profile extends itself, or a
            value that the system locks differs.
    """
    chain = lineage(path)
    whole = chain[-1].part
    for file in reversed(chain[:-1]):
        whole = overlay(whole, file.part)
    for name in dict.fromkeys(file.path.stem for file in chain):
        for locking in system_files(name):
            if locking.resolve() != path.resolve():
                _check_locks(whole, read_profile(locking))
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
        chain.append(_read(_parent(parent, [file.path for file in chain], chain[-1].part)))
    return tuple(chain)


def _parent(name: str, chain: list[Path], child: Part) -> Path:
    """A profile may extend its namesake further down the path: the site's facts, say."""
    place = child.origins["extends"]
    seen = {file.resolve() for file in chain}
    if len(chain) > LONGEST:
        raise SiteProfileError(f"{place}: extends: more than {LONGEST} files")
    candidates = list(files_named(name))
    if name == chain[-1].stem:
        candidates = _after(chain[-1], candidates)
    if not candidates:
        known = [file.stem for file in profile_files()]
        further = " further down the search path" if name == chain[-1].stem else ""
        raise SiteProfileError(
            f"{place}: extends: no profile or family {name!r}{further}{nearest(name, known)}",
            "hpctrain site list",
        )
    if candidates[0].resolve() in seen:
        names = " -> ".join([*(file.stem for file in chain), name])
        raise SiteProfileError(f"{place}: extends goes round: {names}")
    return candidates[0]


def _after(path: Path, candidates: list[Path]) -> list[Path]:
    places = [candidate.resolve() for candidate in candidates]
    here = path.resolve()
    return candidates[places.index(here) + 1 :] if here in places else candidates


def _read(path: Path) -> File:
    document = read(path, SiteProfileError, label_of(path))
    values = document.data
    if not isinstance(values, dict):
        raise SiteProfileError(f"{document.label}: a profile is a mapping of keys to values")
    _check_schema(values.get("schema"), document.origins)
    return File(path, Part(values, document.origins))


def _check_schema(schema: Any, origins: dict[str, str]) -> None:
    """A newer format has keys that this program would call unknown: say what is the matter."""
    if isinstance(schema, int) and schema > SCHEMA:
        raise SiteProfileError(
            f"{origins['schema']}: schema {schema} is newer than this hpctrain, which reads "
            f"{SCHEMA}",
            "update hpctrain",
        )


def _check_locks(whole: Part, locking: Part) -> None:
    for index, key in enumerate(lookup(locking.values, "locked") or ()):
        ours, place = find(whole, key)
        theirs, _ = find(locking, key)
        if ours != theirs:
            lock = locking.origins.get(f"locked.{index}", locking.origins[""])
            raise SiteProfileError(
                f"{place}: {key} = {ours!r}, but the system's profile locks it at {theirs!r} "
                f"({lock})",
                "take the line out, or ask those who run the system",
            )


def find(part: Part, key: str) -> tuple[Any, str]:
    """Return the value of a key whose lists are addressed by name, and where it stands."""
    values, path, place = part.values, "", part.origins[""]
    for word in key.split("."):
        if isinstance(values, list):
            names = [item.get("name") if isinstance(item, dict) else None for item in values]
            word = str(names.index(word)) if word in names else word
        values = lookup(values, word)
        path = f"{path}.{word}" if path else word
        place = part.origins.get(path, place)
    return values, place
