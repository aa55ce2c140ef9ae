"""Runs programs of the system, which may be outside the PATH of users."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence

from hpc_train.base.errors import LabError
from hpc_train.base.processes import Finished, run
from hpc_train.lab.settings import (
    CONTROLLER,
    CONTROLLER_PART,
    HOST_LINK,
    HOST_PART,
    Node,
    Settings,
    address,
    nodes_of,
)

_PATIENCE_S = 30.0
# Daemons and network tools are in folders that the PATH of users, and of su, does not contain.
_SYSTEM = ("/usr/sbin", "/sbin")
_VERSION = re.compile(r"(\d{2}\.\d{2})\.\S{1,40}")


def search_path() -> str:
    """Return the PATH of daemons and programs."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM])


def installed(program: str) -> bool:
    """Whether a program can be found."""
    return shutil.which(program, path=search_path()) is not None


def ask(argv: Sequence[str], timeout_s: float = _PATIENCE_S) -> Finished:
    """Run a program that may fail."""
    return run(("env", f"PATH={search_path()}", *argv), timeout_s)


def must(argv: Sequence[str], timeout_s: float = _PATIENCE_S) -> str:
    """Run a program that must succeed; return its output.

    Raises:
        LabError: it failed; the message has the last line of its error output.
    """
    done = ask(argv, timeout_s)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise LabError(f"`{' '.join(argv)}` failed: {said[-1] if said else done.returncode}")
    return done.stdout


def slurm(folder: str, *argv: str) -> tuple[str, ...]:
    """Return the command line of a Slurm program for the lab or twin in a folder."""
    return ("env", f"SLURM_CONF={folder}/slurm.conf", *argv)


def slurm_version() -> str:
    """Return the version of the Slurm on PATH, such as 24.11.5.

    Raises:
        LabError: its slurmctld does not run.
    """
    # Without a slurm.conf, the other commands of Slurm do not print their version.
    said = must(("slurmctld", "-V")).strip()
    if found := _VERSION.search(said):
        return found.group()
    raise LabError(f"`slurmctld -V` failed: {said}")


Argv = tuple[str, ...]


def namespace(host: str) -> str:
    """Return the name of a host's network namespace."""
    return f"hpctrain-{host}"


def namespaces(settings: Settings) -> tuple[str, ...]:
    """Return the names of all namespaces of a lab, the controller's first."""
    hosts = (CONTROLLER, *(node.name for node in nodes_of(settings)))
    return tuple(namespace(host) for host in hosts)


def build(settings: Settings) -> tuple[Argv, ...]:
    """Return the commands that create namespaces, bridges, links and addresses, in order."""
    steps = [step for node in nodes_of(settings) for step in _node(settings, node)]
    return (*_controller(), *_host(), *steps)


def _controller() -> Iterator[Argv]:
    controller = namespace(CONTROLLER)
    inside = ("ip", "-n", controller)
    yield ("ip", "netns", "add", controller)
    yield (*inside, "link", "set", "lo", "up")
    for network in ("eth0", "ib0"):
        yield (*inside, "link", "add", network, "type", "bridge")
        yield (*inside, "link", "set", network, "up")
    yield (*inside, "addr", "add", f"{address(CONTROLLER_PART)}/16", "dev", "eth0")


def _host() -> Iterator[Argv]:
    """Connect the machine to eth0, as a login node: sbatch and srun work from it."""
    controller, link = namespace(CONTROLLER), HOST_LINK
    yield _link(("ip",), link, "login-eth0", controller)
    yield ("ip", "-n", controller, "link", "set", "login-eth0", "master", "eth0", "up")
    yield ("ip", "addr", "add", f"{address(HOST_PART)}/16", "dev", link)
    yield ("ip", "link", "set", link, "up")


def _node(settings: Settings, node: Node) -> Iterator[Argv]:
    own = namespace(node.name)
    switch, inside = ("ip", "-n", namespace(CONTROLLER)), ("ip", "-n", own)
    yield ("ip", "netns", "add", own)
    yield (*inside, "link", "set", "lo", "up")
    for network, own_address in (("eth0", node.eth0), ("ib0", node.ib0)):
        port = f"{node.name}-{network}"
        yield _link(switch, port, network, own)
        yield (*switch, "link", "set", port, "master", network, "up")
        yield (*inside, "addr", "add", f"{own_address}/16", "dev", network)
        yield (*inside, "link", "set", network, "up")
    shape = ("tbf", "rate", settings.eth0_rate, "burst", "256kb", "latency", "50ms")
    yield ("tc", "-n", own, "qdisc", "add", "dev", "eth0", "root", *shape)


def _link(ip: Argv, end: str, other: str, elsewhere: str) -> Argv:
    peer = ("peer", "name", other, "netns", elsewhere)
    return (*ip, "link", "add", end, "type", "veth", *peer)
