"""Merging of profiles: every value keeps its origin (file:line).

Mappings are merged key by key. Partitions and qualities of service are merged by name, env_blocks
and sources are appended to those of the parent, other lists and values replace the parent's. `null`
removes a value of the parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hpc_train.errors import SiteProfileError
from hpc_train.yamlfile import join

BY_NAME = ("partitions", "qos")
APPENDED = ("env_blocks", "sources")
# Keys on the file itself are not inherited.
OWN = ("extends", "family", "locked", "verified_on")


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
