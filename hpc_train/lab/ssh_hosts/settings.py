"""Settings of the hosts, and the names, addresses and commands that follow from them; pure."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lab.bridged_hosts import Argv, BridgedHost, bridged
from hpc_train.model.value import Value

DEFAULT_FOLDER = "/var/tmp/hpctrain-ssh"  # noqa: S108 - root's own folder, checked before use
SITE = "lab-hosts"
SUBNET = "10.79.0.0/16"
MOST_HOSTS = 100
HOST_LINK = "hpctssh"
PREFIX = "hpctrain-ssh-"
SWITCH = f"{PREFIX}switch"
_MACHINE_ADDRESS = "10.79.0.254"


class SshHost(Value, frozen=True, kw_only=True):
    """A host: its name for ssh and its address."""

    name: str
    address: str

    @property
    def namespace(self) -> str:
        """Return the name of its network namespace."""
        return f"{PREFIX}{self.name}"


def hosts_of(count: int) -> tuple[SshHost, ...]:
    """Return host1, host2, …; the last part of an address is the number of the host."""
    numbers = range(1, count + 1)
    return tuple(SshHost(name=f"host{n}", address=f"10.79.0.{n}") for n in numbers)


def networks(hosts: tuple[SshHost, ...]) -> Iterator[Argv]:
    """Yield the commands that create namespaces, the bridge, links and addresses, in order."""
    yield from bridged(
        SWITCH,
        [
            BridgedHost(name=one.name, namespace=one.namespace, address=f"{one.address}/16")
            for one in hosts
        ],
    )
    machine = ("peer", "name", "machine", "netns", SWITCH)
    yield ("ip", "link", "add", HOST_LINK, "type", "veth", *machine)
    yield ("ip", "-n", SWITCH, "link", "set", "machine", "master", "eth0", "up")
    yield ("ip", "addr", "add", f"{_MACHINE_ADDRESS}/16", "dev", HOST_LINK)
    yield ("ip", "link", "set", HOST_LINK, "up")


def plug(host: SshHost, *, connected: bool) -> Argv:
    """Return the command that connects a host to its network, or pulls its cable."""
    return ("ip", "-n", SWITCH, "link", "set", host.name, "up" if connected else "down")
