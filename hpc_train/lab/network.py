"""The commands that create the lab's networks; pure functions.

The bridges are in the network namespace of the controller. The firewall of the machine does not
filter traffic there, and only one interface is added to the machine itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lab.settings import (
    CONTROLLER,
    CONTROLLER_ADDRESS,
    HOST_ADDRESS,
    Node,
    Settings,
    nodes_of,
)

Argv = tuple[str, ...]

PREFIX = "hpctrain-"
HOST_LINK = "hpctlab"
SUBNETS = ("10.77.0.0/16", "10.78.0.0/16")


def namespace(host: str) -> str:
    """Return the name of a host's network namespace."""
    return f"{PREFIX}{host}"


def namespaces(settings: Settings) -> tuple[str, ...]:
    """Return the names of all namespaces of a lab, the controller's first."""
    return tuple(namespace(host) for host in (CONTROLLER, *(n.name for n in nodes_of(settings))))


def build(settings: Settings) -> tuple[Argv, ...]:
    """Return the commands that create namespaces, bridges, links and addresses, in order."""
    nodes = nodes_of(settings)
    steps = [step for node in nodes for step in _node(node, settings.eth0_rate)]
    return (*_controller(), *_host(), *steps)


def _controller() -> Iterator[Argv]:
    inside = ("ip", "-n", namespace(CONTROLLER))
    yield ("ip", "netns", "add", namespace(CONTROLLER))
    yield (*inside, "link", "set", "lo", "up")
    for network in ("eth0", "ib0"):
        yield (*inside, "link", "add", network, "type", "bridge")
        yield (*inside, "link", "set", network, "up")
    yield (*inside, "addr", "add", f"{CONTROLLER_ADDRESS}/16", "dev", "eth0")


def _host() -> Iterator[Argv]:
    """Connect the machine to eth0, as a login node: sbatch and srun work from it."""
    inside = ("ip", "-n", namespace(CONTROLLER))
    yield _link(("ip",), HOST_LINK, "login-eth0", namespace(CONTROLLER))
    yield (*inside, "link", "set", "login-eth0", "master", "eth0", "up")
    yield ("ip", "addr", "add", f"{HOST_ADDRESS}/16", "dev", HOST_LINK)
    yield ("ip", "link", "set", HOST_LINK, "up")


def _node(node: Node, rate: str) -> Iterator[Argv]:
    switch = ("ip", "-n", namespace(CONTROLLER))
    inside = ("ip", "-n", namespace(node.name))
    yield ("ip", "netns", "add", namespace(node.name))
    yield (*inside, "link", "set", "lo", "up")
    for network, address in (("eth0", node.eth0), ("ib0", node.ib0)):
        port = f"{node.name}-{network}"
        yield _link(switch, port, network, namespace(node.name))
        yield (*switch, "link", "set", port, "master", network, "up")
        yield (*inside, "addr", "add", f"{address}/16", "dev", network)
        yield (*inside, "link", "set", network, "up")
    shape = ("tbf", "rate", rate, "burst", "256kb", "latency", "50ms")
    yield ("tc", "-n", namespace(node.name), "qdisc", "add", "dev", "eth0", "root", *shape)


def _link(ip: Argv, end: str, other: str, elsewhere: str) -> Argv:
    peer = ("peer", "name", other, "netns", elsewhere)
    return (*ip, "link", "add", end, "type", "veth", *peer)
