"""A profile and all that it extends, merged: each value keeps its origin, which has a source."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from hpc_train.base.errors import SiteProfileError, nearest, newer_version
from hpc_train.base.yamlfile import join, lookup, read
from hpc_train.sites.profile import SCHEMA, Source, SourcedSite
from hpc_train.sites.search import files_named, label_of, profile_files, without_links

BY_NAME = ("partitions", "qos")
APPENDED = ("env_blocks", "sources")
# Keys on the file itself are not inherited.
OWN = ("extends", "family", "verified_on")


class Part(NamedTuple):
    """A part of a document: plain values, and the origin of each."""

    values: Any
    origins: Mapping[str, str]


class _Node(NamedTuple):
    """A value with its origin; the items of mappings and lists are nodes."""

    value: Any
    place: str


def overlay(parent: Part, child: Part) -> Part:
    """Return the child's values over the parent's.

    Raises:
        SiteProfileError: one is a mapping or a list of mappings, the other is not.
    """
    handed = {key: value for key, value in parent.values.items() if key not in OWN}
    origins: dict[str, str] = {}
    merged = _merged(_tree(handed, parent.origins), _tree(child.values, child.origins), "")
    return Part(_split(merged, "", origins), origins)


def _tree(values: Any, origins: Mapping[str, str], at: str = "") -> _Node:
    place = origins.get(at, origins[""])
    if isinstance(values, dict):
        items = {key: _tree(value, origins, join(at, key)) for key, value in values.items()}
        return _Node(items, place)
    if isinstance(values, list):
        return _Node([_tree(one, origins, join(at, str(i))) for i, one in enumerate(values)], place)
    return _Node(values, place)


def _split(node: _Node, at: str, origins: dict[str, str]) -> Any:
    """Return the plain values of a tree, and note their origins."""
    origins[at] = node.place
    if isinstance(node.value, dict):
        return {key: _split(one, join(at, key), origins) for key, one in node.value.items()}
    if isinstance(node.value, list):
        return [_split(one, join(at, str(i)), origins) for i, one in enumerate(node.value)]
    return node.value


def _merged(parent: _Node, child: _Node, at: str) -> _Node:
    old, new, is_joined = parent.value, child.value, at in (*BY_NAME, *APPENDED)
    if isinstance(old, dict) and isinstance(new, dict):
        gone = {key for key, one in new.items() if one.value is None and key in old}
        both = {
            key: _merged(old[key], one, join(at, key)) if key in old and key in new else one
            for key, one in {**old, **new}.items()
            if key not in gone
        }
        return _Node(both, child.place)
    if isinstance(old, list) and isinstance(new, list) and is_joined:
        return _Node(_joined(old, new, at), child.place)
    if isinstance(old, dict) or isinstance(new, dict) or is_joined:
        raise SiteProfileError(
            f"{child.place}: {at}: {_kind(new)}, but {_kind(old)} in {parent.place}"
        )
    return child


def _joined(old: list[_Node], new: list[_Node], at: str) -> list[_Node]:
    """Append a list to another; items with the same name are merged.

    Duplicates are kept, and refused later.
    """
    over: dict[str | int, _Node] = {}
    for index, item in enumerate(new):
        name = _name(item) if at in BY_NAME else ""
        over[name if name and name not in over else index] = item
    result = []
    for item in old:
        namesake = over.pop(_name(item), None)
        result.append(_merged(item, namesake, join(at, "0")) if namesake else item)
    return [*result, *over.values()]


def _name(item: _Node) -> str:
    name = item.value.get("name") if isinstance(item.value, dict) else None
    return name.value if name and isinstance(name.value, str) else ""


def _kind(values: Any) -> str:
    named: dict[type, str] = {dict: "a mapping", list: "a list"}
    return named.get(type(values)) or "neither a list nor a mapping"


def find(part: Part, key: str) -> tuple[Any, str]:
    """Return the value of a key and its origin; items of lists are addressed by name."""
    values, path, place = part.values, "", part.origins[""]
    for word in key.split("."):
        if isinstance(values, list):
            names = [item.get("name") if isinstance(item, dict) else None for item in values]
            word = str(names.index(word)) if word in names else word
        values, path = lookup(values, word), join(path, word)
        place = part.origins.get(path, place)
    return values, place


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
    candidates, own = list(files_named(name)), name == chain[-1].stem
    if own:
        candidates = _after(chain[-1], candidates)
    if not candidates:
        known = [file.stem for file in profile_files()]
        text = f"no profile or family {name!r}{nearest(name, known)}"
        if own:
            text = f"{name!r} is this file, and there is no other of that name further down the "
            text += "search path"
        raise SiteProfileError(f"{place}: extends: {text}", "hpctrain site list")
    if without_links(candidates[0]) in seen:
        names = " -> ".join([*(file.stem for file in chain), name])
        raise SiteProfileError(f"{place}: extends is circular: {names}")
    return candidates[0]


def _after(path: Path, candidates: list[Path]) -> list[Path]:
    places = list(map(without_links, candidates))
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
    # First: a newer format has keys that would be reported as unknown.
    if isinstance(schema := values.get("schema"), int) and schema > SCHEMA:
        raise SiteProfileError(*newer_version(document.origins["schema"], schema, SCHEMA))
    return File(path, Part(values, document.origins))


def source_of(site: SourcedSite, key: str) -> Source | None:
    """Return the source of a key; items of lists are addressed by name or number.

    It is in the file that contains the value. The longest key in `covers` wins; a source without
    `covers` applies to the rest. None if no file contains the value, or its file has no source for
    it.
    """
    places = _places(site, key)
    if places is None:
        return None
    path, said = places
    file = _file(site, path)
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
                if find(file.part, cover)[0] is None:
                    place = file.part.origins[f"sources.{index}.covers"]
                    yield f"{place}: this file has no key {cover}"


def _file(site: SourcedSite, path: str) -> str:
    return site.origin(path).rpartition(":")[0]


def _places(site: SourcedSite, key: str) -> tuple[str, str] | None:
    """Return a key with numbers, as in origins, and as in `covers`: by name, or number in its file.

    None if the profile does not have it.
    """
    value: Any = site.value
    path, said = "", ""
    for word in key.split("."):
        part = word
        if isinstance(value, tuple):
            names = [getattr(item, "name", None) for item in value]
            part = str(names.index(word)) if word in names else word
            if not part.isdigit() or int(part) >= len(value):
                return None
            before = [_file(site, join(path, str(index))) for index in range(int(part))]
            value, name = value[int(part)], names[int(part)]
            word = name or str(before.count(_file(site, join(path, part))))
        else:
            value = value.get(word) if isinstance(value, dict) else getattr(value, word, None)
        path, said = join(path, part), join(said, word)
        if value is None:
            return None
    return path, said
