"""Network namespaces of hosts, joined by a bridge in a namespace of its own; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.model.value import Value

Argv = tuple[str, ...]


class BridgedHost(Value, frozen=True, kw_only=True):
    """A host: its name at the bridge, its namespace, and its address with the length of the net."""

    name: str
    namespace: str
    address: str


def bridged(bridge: str, hosts: Sequence[BridgedHost]) -> Iterator[Argv]:
    """Yield the commands that create the bridge in the namespace `bridge`, and the hosts."""
    switch = ("ip", "-n", bridge)
    yield ("ip", "netns", "add", bridge)
    yield (*switch, "link", "add", "eth0", "type", "bridge")
    yield (*switch, "link", "set", "eth0", "up")
    for host in hosts:
        inside = ("ip", "-n", host.namespace)
        yield ("ip", "netns", "add", host.namespace)
        yield (*inside, "link", "set", "lo", "up")
        peer = ("peer", "name", "eth0", "netns", host.namespace)
        yield (*switch, "link", "add", host.name, "type", "veth", *peer)
        yield (*switch, "link", "set", host.name, "master", "eth0", "up")
        yield (*inside, "addr", "add", host.address, "dev", "eth0")
        yield (*inside, "link", "set", "eth0", "up")
