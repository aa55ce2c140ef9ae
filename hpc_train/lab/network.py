"""The commands that create the lab's networks; pure functions.

The bridges are in the network namespace of the controller. The firewall of the machine does not
filter traffic there, and only one interface is added to the machine itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lab.settings import CONTROLLER, CONTROLLER_PART, HOST_PART, Node, Settings, nodes_of

Argv = tuple[str, ...]


def namespace(number: int, host: str) -> str:
    """Return the name of a host's network namespace; `*` as the host is a pattern of all."""
    return f"hpctrain-{host}" if number == 1 else f"hpctrain-{number}-{host}"


def namespaces(settings: Settings) -> tuple[str, ...]:
    """Return the names of all namespaces of a lab, the controller's first."""
    hosts = (CONTROLLER, *(node.name for node in nodes_of(settings)))
    return tuple(namespace(settings.number, host) for host in hosts)


def build(settings: Settings) -> tuple[Argv, ...]:
    """Return the commands that create namespaces, bridges, links and addresses, in order."""
    steps = [step for node in nodes_of(settings) for step in _node(settings, node)]
    return (*_controller(settings), *_host(settings), *steps)


def _controller(settings: Settings) -> Iterator[Argv]:
    controller = namespace(settings.number, CONTROLLER)
    inside = ("ip", "-n", controller)
    yield ("ip", "netns", "add", controller)
    yield (*inside, "link", "set", "lo", "up")
    for network in ("eth0", "ib0"):
        yield (*inside, "link", "add", network, "type", "bridge")
        yield (*inside, "link", "set", network, "up")
    yield (*inside, "addr", "add", f"{settings.address(CONTROLLER_PART)}/16", "dev", "eth0")


def _host(settings: Settings) -> Iterator[Argv]:
    """Connect the machine to eth0, as a login node: sbatch and srun work from it."""
    controller, link = namespace(settings.number, CONTROLLER), settings.host_link
    yield _link(("ip",), link, "login-eth0", controller)
    yield ("ip", "-n", controller, "link", "set", "login-eth0", "master", "eth0", "up")
    yield ("ip", "addr", "add", f"{settings.address(HOST_PART)}/16", "dev", link)
    yield ("ip", "link", "set", link, "up")


def _node(settings: Settings, node: Node) -> Iterator[Argv]:
    own = namespace(settings.number, node.name)
    switch, inside = ("ip", "-n", namespace(settings.number, CONTROLLER)), ("ip", "-n", own)
    yield ("ip", "netns", "add", own)
    yield (*inside, "link", "set", "lo", "up")
    for network, address in (("eth0", node.eth0), ("ib0", node.ib0)):
        port = f"{node.name}-{network}"
        yield _link(switch, port, network, own)
        yield (*switch, "link", "set", port, "master", network, "up")
        yield (*inside, "addr", "add", f"{address}/16", "dev", network)
        yield (*inside, "link", "set", network, "up")
    shape = ("tbf", "rate", settings.eth0_rate, "burst", "256kb", "latency", "50ms")
    yield ("tc", "-n", own, "qdisc", "add", "dev", "eth0", "root", *shape)


def _link(ip: Argv, end: str, other: str, elsewhere: str) -> Argv:
    peer = ("peer", "name", other, "netns", elsewhere)
    return (*ip, "link", "add", end, "type", "veth", *peer)
