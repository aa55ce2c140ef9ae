"""Merging of profiles: every value keeps its origin (file:line).

Mappings are merged key by key. Partitions and qualities of service are merged by name, env_blocks
and sources are appended to those of the parent, other lists and values replace the parent's. `null`
removes a value of the parent.

The administrator of a machine may lock keys: no other profile may change their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import inspect as kinds

from hpc_train.base.errors import SiteProfileError
from hpc_train.base.yamlfile import join, lookup
from hpc_train.sites.site import SiteProfile

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


def check_locks(whole: Part, locking: Iterable[Part]) -> None:
    """Check a profile against the locks of system profiles with its name.

    Raises:
        SiteProfileError: a locked value differs, or a locked name is not a key.
    """
    for part in locking:
        for key, lock in locked_keys(part):
            ours, place = find(whole, key)
            theirs, _ = find(part, key)
            if ours != theirs:
                raise SiteProfileError(
                    f"{place}: {key} = {_shown(ours)}, but the system's profile locks it at "
                    f"{_shown(theirs)} ({lock})",
                    "remove the line, or ask the administrators of the system",
                )


def locked_keys(part: Part) -> tuple[tuple[str, str], ...]:
    """Return the keys that a file locks, with their origins.

    Raises:
        SiteProfileError: it is not a list of keys of a profile.
    """
    keys = part.values.get("locked")
    if keys is None:
        return ()
    place = part.origins.get("locked", part.origins[""])
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise SiteProfileError(f"{place}: locked: must be a list of keys: [account, limits]")
    for key in keys:
        if not is_key(key):
            raise SiteProfileError(
                f"{place}: locked: {key!r} is not a key of a profile", "hpctrain site schema"
            )
    return tuple((key, part.origins.get(f"locked.{i}", place)) for i, key in enumerate(keys))


def is_key(key: str) -> bool:
    """Whether a key exists in the schema; items of lists are addressed by name."""
    info: Any = kinds.type_info(SiteProfile)
    for word in key.split("."):
        info = _below(info, word)
        if info is None:
            return False
    return True


def _below(info: Any, word: str) -> Any:
    """Return the type below a key; None if there is none."""
    info = _bare(info)
    if isinstance(info, kinds.StructType):
        return next((field.type for field in info.fields if field.name == word), None)
    if isinstance(info, kinds.DictType):
        return info.value_type
    return info.item_type if isinstance(info, kinds.VarTupleType) else None


def _bare(info: Any) -> Any:
    if isinstance(info, kinds.Metadata):
        return _bare(info.type)
    if isinstance(info, kinds.UnionType):
        return _bare(next(one for one in info.types if not isinstance(one, kinds.NoneType)))
    return info


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


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) < 200 else f"{text[:200]}…"
