"""Network namespaces of hosts, joined by a bridge in a namespace of its own."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hpc_train.lab.daemons import NETNS, ask, end, members, must


class NetworkHost(NamedTuple):
    """A host: its name at the bridge, its namespace, and its address with the length of the net."""

    name: str
    namespace: str
    address: str


def join(bridge: str, hosts: Iterable[NetworkHost]) -> None:
    """Create the bridge in the namespace `bridge`, and the hosts."""
    switch = ("ip", "-n", bridge)
    must(("ip", "netns", "add", bridge))
    must((*switch, "link", "add", "eth0", "type", "bridge"))
    must((*switch, "link", "set", "eth0", "up"))
    for host in hosts:
        inside = ("ip", "-n", host.namespace)
        must(("ip", "netns", "add", host.namespace))
        must((*inside, "link", "set", "lo", "up"))
        peer = ("peer", "name", "eth0", "netns", host.namespace)
        must((*switch, "link", "add", host.name, "type", "veth", *peer))
        must((*switch, "link", "set", host.name, "master", "eth0", "up"))
        must((*inside, "addr", "add", host.address, "dev", "eth0"))
        must((*inside, "link", "set", "eth0", "up"))


def remove(prefix: str) -> None:
    """Kill all that runs in the namespaces whose names begin so, and remove them."""
    names = [path.name for path in Path(NETNS).glob(f"{prefix}*")]
    assert end(lambda: members(names), 0.0), f"processes in {names} cannot be killed"
    for name in names:
        ask(("ip", "netns", "del", name))
