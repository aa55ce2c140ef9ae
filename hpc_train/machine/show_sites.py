"""Profiles: one line each, the values of one with origin and source, and their keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hpc_train.base.errors import HpcTrainError, SiteProfileError
from hpc_train.base.value import Value, encode_unit
from hpc_train.base.yamlfile import join
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import Machine, load_site
from hpc_train.sites.merge import source_of
from hpc_train.sites.profile import SiteProfile, Source, SourcedSite
from hpc_train.sites.search import label_of, layer_at, layer_of, profile_files


class ProfileSummary(Value, frozen=True, kw_only=True):
    """One profile in `site list`; `gpus` as `4 a100`, unknown values are empty."""

    name: str
    scheduler: str
    gpus: tuple[str, ...]
    fabric: str
    launchers: tuple[str, ...]
    verified_on: str
    confidence: str
    description: str
    file: str
    layer: str


def list_sites() -> Iterator[ProfileSummary | HpcTrainError]:
    """Yield each profile on the search path, or its error."""
    for path in profile_files():
        try:
            yield _listed(load_site(path, Machine(cpus=1, gpus=0)).value, path)
        except SiteProfileError as failure:
            yield failure


def _listed(profile: SiteProfile, path: Path) -> ProfileSummary:
    nodes = [
        f"{one.gpus_per_node} {one.gpu_type or one.gpu_model or 'GPUs'}"
        for one in profile.partitions
        if one.gpus_per_node and not find_batch_system(profile.scheduler).this_machine
    ]
    network = profile.network
    # Else that of its weakest source.
    stated = {source.confidence for source in profile.sources}
    weakest = next((word for word in ("low", "medium", "high") if word in stated), "")
    return ProfileSummary(
        name=profile.name,
        scheduler=profile.scheduler,
        gpus=tuple(dict.fromkeys(nodes)),
        fabric=(network.fabric if network else None) or "",
        launchers=profile.launchers.allowed,
        verified_on=profile.verified_on or "",
        confidence=profile.confidence or weakest,
        description=profile.description,
        file=label_of(path),
        layer=layer_of(path),
    )


# Facts that improve job scripts; not every site has the other keys.
_WANTED = ("contact", "url", "verified_on", "slurm", "partitions", "network", "internet", "storage")
_WANTED_OF_PARTITION = ("max_time", "max_nodes", "gpus_per_node", "cpus_per_node")


class ProfileValue(Value, frozen=True, kw_only=True):
    """One value: key, value, origin, layer of the file, and source.

    `source` is the number of the source, counted from 1; 0 means none.
    """

    key: str
    value: Any
    origin: str
    layer: str
    source: int


class ShownProfile(NamedTuple):
    """The values of a profile, its sources, and the keys that it does not state."""

    values: tuple[ProfileValue, ...]
    sources: tuple[Source, ...]
    unknown: tuple[str, ...]


def show_profile(name: str, *, defaults: bool = False) -> ShownProfile:
    """Return the values of a profile; with `defaults`, including defaults.

    Raises:
        HpcTrainError: there is no such profile, or it is invalid.
    """
    site = load_site(name)
    return ShownProfile(show_site(site, defaults=defaults), site.value.sources, unknown_keys(site))


def show_site(site: SourcedSite, *, defaults: bool = False) -> tuple[ProfileValue, ...]:
    """Return the values in the order of the schema, lists by names, without defaults.

    With `defaults`, including defaults.
    """
    plain = msgspec.to_builtins(site.value, enc_hook=encode_unit)
    rows = []
    for key, name, value in _leaves(plain, "", ""):
        stated, empty = key in site.origins, value in (None, [], (), {}, "")
        if not key.startswith("sources.") and (stated or (defaults and not empty)):
            origin, source = site.origin(key), source_of(site, key) if stated else None
            number = site.value.sources.index(source) + 1 if source else 0
            layer = layer_at(origin)
            rows.append(
                ProfileValue(key=name, value=value, origin=origin, layer=layer, source=number)
            )
    return tuple(rows)


def unknown_keys(site: SourcedSite) -> tuple[str, ...]:
    """Return the useful facts that the profile does not state."""
    profile = site.value
    missing = [key for key in _WANTED if getattr(profile, key) in (None, (), {})]
    for partition in profile.partitions:
        missing += [
            f"partitions.{partition.name}.{key}"
            for key in _WANTED_OF_PARTITION
            if getattr(partition, key) is None
        ]
    return tuple(missing)


def _leaves(value: Any, key: str, name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the values of a tree: their keys by position, their keys by name, themselves."""
    if isinstance(value, dict) and value:
        items = [(one, one, inner) for one, inner in value.items()]
    elif isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        items = [(str(i), str(one.get("name", i)), one) for i, one in enumerate(value)]
    else:
        yield key, name, value
        return
    for part, label, inner in items:
        yield from _leaves(inner, join(key, part), join(name, label))
