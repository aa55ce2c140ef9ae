"""Validation of a profile's network, env_blocks and rendezvous beyond their types."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hpc_train.errors import SiteProfileError, nearest
from hpc_train.model.launchers_and_preflight import HOST_METHOD
from hpc_train.model.partition import ANY
from hpc_train.model.site import SourcedSite
from hpc_train.model.site_network import EnvBlock, Network
from hpc_train.model.version_ranges import parts, within
from hpc_train.registry import find_batch_system

_HOST_METHODS = (
    "loopback",
    "first-host",
    "batch-host",
    "hostname-ip",
    "resolver",
    "address:N",
    "remote-address:N",
    "interface:NAME",
)
_LAST_PORT = 65535
_WITH_NAME = ("first-host", "batch-host", "resolver")
_VERBS = ("infiniband", "roce")
_SCRIPTED = ("gcp-tcpxo", "gcp-gib")
# Key of the network -> the fabrics that use it; all fabrics use the other keys.
_ONLY = {
    "hcas": _VERBS,
    "gdr_level": (*_VERBS, "slingshot"),
    "gid_index": ("roce",),
    "traffic_class": ("roce",),
    "alt_read": ("slingshot",),
    "ip_over_ib": ("infiniband",),
}
_WITHOUT_FABRIC = ("nccl", "gpus", "torch_mpi", "script")


def check_network(site: SourcedSite) -> None:
    """Refuse keys without effect, and missing keys that every job needs.

    Raises:
        SiteProfileError: with file:line.
    """
    network = site.value.network
    if network is None:
        return
    for key in _given(network):
        _check_key(site, network, key)
    if network.fabric in _SCRIPTED and network.script is None:
        raise SiteProfileError(
            f"{site.near('network.fabric')}: network.fabric {network.fabric} needs network.script: "
            "the vendor's script of settings, by its whole path"
        )
    if network.interfaces and network.exclude_interfaces:
        raise SiteProfileError(
            f"{site.near('network.exclude_interfaces')}: "
            "use either network.interfaces or network.exclude_interfaces"
        )
    if network.gid_index is not None:
        _check_gid(site, network)


def check_blocks(site: SourcedSite) -> None:
    """Refuse blocks without effect or with contradictions.

    Raises:
        SiteProfileError: with file:line.
    """
    for index, block in enumerate(site.value.env_blocks):
        key = f"env_blocks.{index}"
        _check_content(site, block, key)
        _check_words(site, block, key)


def _given(network: Network) -> list[str]:
    plain = msgspec.structs.asdict(network)
    return [key for key, value in plain.items() if value not in (None, (), False)]


def _check_key(site: SourcedSite, network: Network, key: str) -> None:
    place = site.near(f"network.{key}")
    if network.fabric is None and key not in _WITHOUT_FABRIC:
        raise SiteProfileError(
            f"{place}: network.{key} has no effect without network.fabric",
            "add network.fabric, or set variables with env or env_blocks",
        )
    fabrics = _ONLY.get(key)
    if fabrics and network.fabric not in fabrics:
        raise SiteProfileError(
            f"{place}: network.{key} has no effect with fabric {network.fabric}; "
            f"it belongs to {' or '.join(fabrics)}"
        )


def _check_gid(site: SourcedSite, network: Network) -> None:
    place = site.near("network.gid_index")
    if network.nccl is None or not within(parts(network.nccl), "<2.21"):
        raise SiteProfileError(
            f"{place}: network.gid_index is for NCCL below 2.21, which cannot choose it; "
            f"network.nccl is {network.nccl or 'not given'}",
            "remove it, or add network.nccl",
        )


def _check_content(site: SourcedSite, block: EnvBlock, key: str) -> None:
    if not block.env and not block.unset:
        raise SiteProfileError(f"{site.near(key)}: {key}: env or unset is required")
    if block.already_set_by is not None and block.unset:
        raise SiteProfileError(
            f"{site.near(f'{key}.unset')}: {key}.unset has no effect with already_set_by"
        )
    if block.separator != ":" and block.mode not in ("prepend", "append"):
        raise SiteProfileError(
            f"{site.near(f'{key}.separator')}: {key}.separator has no effect with mode "
            f"{block.mode}; it belongs to prepend or append"
        )


def _check_words(site: SourcedSite, block: EnvBlock, key: str) -> None:
    """Refuse a launcher or partition that does not exist."""
    known: dict[str, tuple[Any, tuple[str, ...]]] = {
        "launcher": (block.when.launcher, site.value.launchers.allowed),
        "partition": (block.when.partition, tuple(one.name for one in site.value.partitions)),
    }
    for name, (wanted, allowed) in known.items():
        words = (wanted,) if isinstance(wanted, str) else wanted or ()
        for word in words:
            if allowed and word not in allowed and ANY not in allowed:
                path = f"{key}.when.{name}"
                raise SiteProfileError(
                    f"{site.near(path)}: {path}: unknown {name} {word!r}{nearest(word, allowed)}; "
                    f"known: {', '.join(allowed)}"
                )


def check_rendezvous(site: SourcedSite) -> None:
    """Refuse an unknown method, and a suffix of an address.

    Raises:
        SiteProfileError: with the nearest method.
    """
    meeting = site.value.rendezvous
    where = site.near("rendezvous.host")
    if not re.fullmatch(HOST_METHOD, meeting.host):
        raise SiteProfileError(
            f"{where}: rendezvous.host: {meeting.host!r} is none"
            f"{nearest(meeting.host, _HOST_METHODS)}; allowed: {', '.join(_HOST_METHODS)} "
            "(N from 1 to 9)"
        )
    batch = find_batch_system(site.value.scheduler)
    if meeting.host.startswith("remote-address:") and batch.starter and not batch.steps:
        raise SiteProfileError(
            f"{where}: rendezvous.host: {meeting.host} asks the first node with srun, which "
            f"{batch.title} does not have",
            f"{meeting.host.removeprefix('remote-')}: the script runs on the first node",
        )
    last = meeting.port + meeting.ports - 1
    if last > _LAST_PORT:
        raise SiteProfileError(
            f"{site.near('rendezvous.ports')}: ports {meeting.port} to {last}, but the last port "
            f"is {_LAST_PORT}",
            f"ports: {_LAST_PORT - meeting.port + 1} or fewer",
        )
    if meeting.suffix and meeting.host not in _WITH_NAME:
        raise SiteProfileError(
            f"{site.near('rendezvous.suffix')}: "
            f"a suffix needs a host name, which {meeting.host} does not give; use it with "
            f"{', '.join(_WITH_NAME)}"
        )
