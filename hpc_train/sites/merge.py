"""A profile and all that it extends, merged: every value keeps its origin (file:line)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from hpc_train.base.errors import SiteProfileError, nearest, newer_version
from hpc_train.base.yamlfile import join, lookup, read
from hpc_train.sites.profile import SCHEMA
from hpc_train.sites.search import files_named, label_of, profile_files, without_links

BY_NAME = ("partitions", "qos")
APPENDED = ("env_blocks", "sources")
# Keys on the file itself are not inherited.
OWN = ("extends", "family", "verified_on")


class Part(NamedTuple):
    """A part of a document: plain values, and the origin of each."""

    values: Any
    origins: Mapping[str, str]
    path: str = ""

    def at(self, key: str) -> Part:
        """Return the part below `key`."""
        inner = self.values[int(key)] if isinstance(self.values, list) else self.values[key]
        return Part(inner, self.origins, join(self.path, key))


def overlay(parent: Part, child: Part) -> Part:
    """Return the child's values over the parent's.

    Raises:
        SiteProfileError: one is a mapping or a list of mappings, the other is not.
    """
    origins: dict[str, str] = {"": child.origins[""]}
    handed = {key: value for key, value in parent.values.items() if key not in OWN}
    values = _mapping(Part(handed, parent.origins), child, "", origins)
    return Part(values, origins)


def _mapping(parent: Part, child: Part, at: str, origins: dict[str, str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key in (*parent.values, *(key for key in child.values if key not in parent.values)):
        there, place = key in parent.values, join(at, key)
        if key not in child.values:
            result[key] = _copy(parent.at(key), place, origins)
        elif not there:
            result[key] = _copy(child.at(key), place, origins)
        elif child.values[key] is not None:
            result[key] = _joined(parent.at(key), child.at(key), place, origins)
    return result


def _joined(parent: Part, child: Part, at: str, origins: dict[str, str]) -> Any:
    both = (parent.values, child.values)
    if all(isinstance(values, dict) for values in both):
        _note(child, at, origins)
        return _mapping(parent, child, at, origins)
    if all(isinstance(values, list) for values in both) and at in (*BY_NAME, *APPENDED):
        _note(child, at, origins)
        return _list(parent, child, at, origins)
    if any(isinstance(values, dict) for values in both) or at in (*BY_NAME, *APPENDED):
        raise SiteProfileError(
            f"{_place(child)}: {at}: {_kind(child)}, but {_kind(parent)} in {_place(parent)}"
        )
    return _copy(child, at, origins)


def _list(parent: Part, child: Part, at: str, origins: dict[str, str]) -> list[Any]:
    """Merge two lists; items with the same name are merged."""
    result: list[Any] = []
    over = _named(child) if at in BY_NAME else {}
    for index in map(str, range(len(parent.values))):
        item, place = parent.at(index), join(at, index)
        namesake = over.pop(_name(item.values), None)
        if namesake is None:
            result.append(_copy(item, place, origins))
        else:
            _note(namesake, place, origins)
            result.append(_mapping(item, namesake, place, origins))
    rest = over.values() if at in BY_NAME else (child.at(str(i)) for i in range(len(child.values)))
    for item in rest:
        result.append(_copy(item, join(at, str(len(result))), origins))
    return result


def _named(part: Part) -> dict[str, Part]:
    """Return the items of a list by name; duplicates are kept, and refused later."""
    items: dict[str, Part] = {}
    for index in map(str, range(len(part.values))):
        name = _name(part.at(index).values)
        items[name if name and name not in items else f"\0{index}"] = part.at(index)
    return items


def _name(item: Any) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else ""


def _copy(part: Part, at: str, origins: dict[str, str]) -> Any:
    _note(part, at, origins)
    if isinstance(part.values, dict):
        return {key: _copy(part.at(key), join(at, key), origins) for key in part.values}
    if isinstance(part.values, list):
        return [_copy(part.at(str(i)), join(at, str(i)), origins) for i in range(len(part.values))]
    return part.values


def _kind(part: Part) -> str:
    named: dict[type, str] = {dict: "a mapping", list: "a list"}
    return named.get(type(part.values)) or "neither a list nor a mapping"


def _place(part: Part) -> str:
    return part.origins.get(part.path, part.origins[""])


def _note(part: Part, at: str, origins: dict[str, str]) -> None:
    origins[at] = _place(part)


def find(part: Part, key: str) -> tuple[Any, str]:
    """Return the value of a key and its origin; items of lists are addressed by name."""
    values, path, place = part.values, "", part.origins[""]
    for word in key.split("."):
        if isinstance(values, list):
            names = [item.get("name") if isinstance(item, dict) else None for item in values]
            word = str(names.index(word)) if word in names else word
        values = lookup(values, word)
        path = f"{path}.{word}" if path else word
        place = part.origins.get(path, place)
    return values, place


LONGEST = 8


def read_profile(path: Path) -> Part:
    """Read a profile and merge it with what it extends.

    Raises:
        SiteProfileError: a file is invalid, the parent is missing, or a profile extends itself.
    """
    *children, root = lineage(path)
    whole = root.part
    for file in reversed(children):
        whole = overlay(whole, file.part)
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
