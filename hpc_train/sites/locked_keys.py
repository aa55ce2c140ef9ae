"""Locks: keys of a profile that only the administrator of a machine may set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import inspect as kinds

from hpc_train.errors import SiteProfileError
from hpc_train.model.site import SiteProfile
from hpc_train.sites.merge import Part
from hpc_train.yamlfile import lookup


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
