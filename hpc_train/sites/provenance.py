"""What a value of a profile rests on: the sources of the file in which it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpc_train.model.site import SiteProfile, Source
from hpc_train.model.value import Sourced

Site = Sourced[SiteProfile]


def source_of(site: Site, key: str) -> Source | None:
    """Return the source of a key, whose lists are addressed by position or by name.

    Of the sources in the file of the value, that which covers the nearest part above it, else the
    first that covers nothing in particular.
    """
    path = _by_position(site, key)
    file = _file(site.near(path or key))
    best, depth = None, -1
    for index, source in enumerate(site.value.sources):
        if _file(site.near(f"sources.{index}.what")) != file:
            continue
        for covered in source.covers or ("",):
            place = _by_position(site, covered) if covered else ""
            if place is not None and _above(place, path or key) and len(place) > depth:
                best, depth = source, len(place)
    return best


def covers_nothing(site: Site) -> Iterator[tuple[str, str]]:
    """Yield the keys that a source covers and that are not in its file, with their places."""
    for index, source in enumerate(site.value.sources):
        file = _file(site.near(f"sources.{index}.what"))
        for number, covered in enumerate(source.covers):
            path = _by_position(site, covered)
            if path is None or not _in_file(site, path, file):
                yield covered, site.near(f"sources.{index}.covers.{number}")


def _by_position(site: Site, key: str) -> str | None:
    """Return the key with positions instead of names, or nothing when nobody wrote it."""
    path = ""
    value: Any = site.value
    for word in key.split("."):
        if isinstance(value, tuple):
            names = [getattr(item, "name", None) for item in value]
            word = str(names.index(word)) if word in names else word
            value = value[int(word)] if word.isdigit() and int(word) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(word)
        else:
            value = getattr(value, word, None)
        path = f"{path}.{word}" if path else word
    return path if path in site.origins else None


def _in_file(site: Site, path: str, file: str) -> bool:
    """A mapping may be begun by a parent and have one value here."""
    places = [place for key, place in site.origins.items() if _above(path, key)]
    return any(_file(place) == file for place in places)


def _above(place: str, key: str) -> bool:
    return place in ("", key) or key.startswith(f"{place}.")


def _file(place: str) -> str:
    return place.rpartition(":")[0]
