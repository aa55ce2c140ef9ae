"""The key `sites` of a job: keys that it has at one site only.

A key of a site takes precedence over the same key of the job. Mappings are merged key by key,
other values are replaced, and `null` removes a value, as where one profile extends another.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hpc_train.base.errors import SpecError, UnknownNameError
from hpc_train.base.value import Sourced
from hpc_train.base.yamlfile import lookup
from hpc_train.jobs.override import SITES, Override, apply, check_key, full_key

_EXAMPLE = "sites: {NAME: {partition: debug, account: abc123}}"


def check_sites(
    data: Mapping[str, Any], origins: Mapping[str, str], known: Callable[[], Sequence[str]]
) -> tuple[str, ...]:
    """Return the sites that have keys of their own in a job.

    Raises:
        SpecError: no mapping of mappings, or an unknown key. UnknownNameError: an unknown site.
    """
    sites, names = _mappings(data[SITES], origins), known()
    for site, keys in sites.items():
        path = f"{SITES}.{site}"
        if site not in names:
            place = f"{_place(origins, path)}: {SITES}"
            raise UnknownNameError("site", site, names, place, "hpctrain site list prints them")
        for key in keys:
            _check(key, _place(origins, f"{path}.{key}"), path)
    return tuple(sites)


def _mappings(sites: Any, origins: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the keys of each site.

    Raises:
        SpecError: it is not a mapping of mappings.
    """
    near = Sourced(value=None, origins=dict(origins)).near
    if not isinstance(sites, dict):
        raise SpecError(f"{near(SITES)}: {SITES}: must be a mapping with names of sites", _EXAMPLE)
    for site, keys in sites.items():
        path = f"{SITES}.{site}"
        if not isinstance(keys, dict):
            raise SpecError(f"{near(path)}: {path}: must be a mapping with keys of a job", _EXAMPLE)
    return sites


def _place(origins: Mapping[str, str], path: str) -> str:
    """Return the place of a mapping; an option names only what is in it."""
    below = (place for key, place in origins.items() if key.startswith(f"{path}."))
    return origins.get(path) or next(below, Sourced(value=None, origins=origins).near(path))


def _check(key: str, where: str, path: str) -> None:
    if key == SITES:
        raise SpecError(f"{where}: {path} has keys of a job, not {SITES}", _EXAMPLE)
    if key != "resources":
        check_key(key, where)


def at_site(data: dict[str, Any], origins: dict[str, str], site: str) -> None:
    """Merge the keys of one site into a job, and remove those of all sites.

    Raises:
        SpecError: a key lies below a value that has no parts.
    """
    place = f"{SITES}.{site}"
    chosen = _mappings(data.pop(SITES), origins).get(site, {})
    near = Sourced(value=None, origins=dict(origins)).near
    for path in [path for path in origins if path == SITES or path.startswith(f"{SITES}.")]:
        del origins[path]
    for path, value in _leaves(copy.deepcopy(chosen), ""):
        key = full_key(path)
        if value is None:
            _remove(data, origins, key)
        elif value != {} or not isinstance(lookup(data, key), dict):
            apply(data, origins, [Override(key=key, value=value, origin=near(f"{place}.{path}"))])


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what is to be set: the values in mappings, and empty mappings."""
    if not isinstance(value, dict) or (path and not value):
        yield path, value
        return
    for key, inner in value.items():
        yield from _leaves(inner, f"{path}.{key}" if path else key)


def _remove(data: dict[str, Any], origins: dict[str, str], key: str) -> None:
    parent, _, last = key.rpartition(".")
    target = lookup(data, parent)
    if isinstance(target, dict) and last in target:
        del target[last]
        for path in [path for path in origins if path == key or path.startswith(f"{key}.")]:
            del origins[path]
