"""The source of a value of a profile: the one in its file that covers it most closely."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpc_train.sites.merge import File, find, lineage
from hpc_train.sites.profile import Source, SourcedSite


def source_of(site: SourcedSite, key: str) -> Source | None:
    """Return the source of a key; items of lists are addressed by name or number.

    It is in the file that contains the value. The longest key in `covers` wins; a source without
    `covers` applies to the rest. None if no file contains the value, or its file has no source for
    it.
    """
    path = _path(site.value, key)
    if path is None:
        return None
    file = _file(site, path)
    said = _in_file(site, path)
    sources = [
        source
        for index, source in enumerate(site.value.sources)
        if _file(site, f"sources.{index}") == file
    ]
    found = [
        (len(cover), source)
        for source in sources
        for cover in source.covers
        if f"{said}.".startswith(f"{cover}.")
    ]
    rest = [(0, source) for source in sources if not source.covers]
    return max((*found, *rest), key=lambda pair: pair[0], default=(0, None))[1]


def unknown_covers(path: Path) -> Iterator[str]:
    """Yield errors for keys in `covers` that the file of the source does not contain."""
    for file in lineage(path):
        for index, source in enumerate(file.part.values.get("sources") or ()):
            for cover in source.get("covers") or ():
                if not _says(file, cover):
                    place = file.part.origins[f"sources.{index}.covers"]
                    yield f"{place}: this file has no key {cover}"


def _says(file: File, key: str) -> bool:
    value, _ = find(file.part, key)
    return value is not None


def _file(site: SourcedSite, path: str) -> str:
    return site.origin(path).rpartition(":")[0]


def _path(value: Any, key: str) -> str | None:
    """Return the key with numbers instead of names, as in origins; None if there is none."""
    words: list[str] = []
    for word in key.split("."):
        if isinstance(value, tuple):
            names = [getattr(item, "name", None) for item in value]
            word = str(names.index(word)) if word in names else word
            inside = word.isdigit() and int(word) < len(value)
            value = value[int(word)] if inside else None
        else:
            value = value.get(word) if isinstance(value, dict) else getattr(value, word, None)
        words.append(word)
        if value is None:
            return None
    return ".".join(words)


def _in_file(site: SourcedSite, path: str) -> str:
    """Return the key as in `covers`: by name, or by its number in its file."""
    words: list[str] = []
    value: Any = site.value
    at = ""
    for word in path.split("."):
        here = f"{at}.{word}" if at else word
        if isinstance(value, tuple):
            before = [_file(site, f"{at}.{index}") for index in range(int(word))]
            value = value[int(word)]
            name = getattr(value, "name", None)
            words.append(name or str(before.count(_file(site, here))))
        else:
            value = value[word] if isinstance(value, dict) else getattr(value, word)
            words.append(word)
        at = here
    return ".".join(words)
