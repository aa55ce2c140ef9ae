"""Settings of a lab, and the names and addresses derived from them."""

import re
from typing import ClassVar

from hpc_train.base.errors import HpcTrainError, LabError
from hpc_train.base.values import Memory, Value

DEFAULT_FOLDER = "/var/tmp/hpctrain-lab"  # noqa: S108 - root's own folder, checked before use
CONTROLLER = "labctl"
# The last parts of their addresses.
CONTROLLER_PART, HOST_PART = 253, 254
# The cluster, its site profile, and the machine's interface to it.
NAME, HOST_LINK = "lab", "hpctlab"
# The networks eth0 and ib0.
SUBNETS = ("10.77.0.0/16", "10.78.0.0/16")

_GPU_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")
# slurm.conf has no quoting; a socket path, with slurmd's suffix, is limited to 107 bytes.
_FOLDER = re.compile(r"(/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)+")
_FOLDER_LENGTH = 60


class Settings(Value, frozen=True, kw_only=True):
    """Requested settings."""

    nodes: int = 4
    cpus: int = 8
    mem: Memory = Memory(4000)
    gpus: int = 4
    gpu_type: str = "a100"
    eth0_rate: ClassVar[str] = "200mbit"
    accounting: bool = False
    folder: str = DEFAULT_FOLDER


def address(last: int, network: int = 0) -> str:
    """Return an address of eth0, or with 1 of ib0."""
    return SUBNETS[network].replace(".0.0/16", f".0.{last}")


class Node(Value, frozen=True, kw_only=True):
    """A node: host name and two addresses."""

    name: str
    eth0: str
    ib0: str


def nodes_of(settings: Settings) -> tuple[Node, ...]:
    """Return lab1, lab2, …; the last part of an address is the number of the node."""
    return tuple(
        Node(name=f"lab{n}", eth0=address(n), ib0=address(n, 1))
        for n in range(1, settings.nodes + 1)
    )


def check(settings: Settings) -> None:
    """Check the settings that become part of configuration files and names.

    Raises:
        LabError: a value is not valid.
    """
    if not _GPU_TYPE.fullmatch(settings.gpu_type):
        raise LabError(
            f"--gpu-type {settings.gpu_type!r} is not a name of letters, digits, _ and -"
        )
    if not _FOLDER.fullmatch(settings.folder) or len(settings.folder) > _FOLDER_LENGTH:
        raise LabError(
            f"--dir {settings.folder!r}: the folder has to be absolute, at most {_FOLDER_LENGTH} "
            "characters long, of letters, digits and . _ + - only"
        )


def memory(text: str) -> Memory:
    """Read the memory of a node.

    Raises:
        HpcTrainError: it has no unit, or is not a size.
    """
    try:
        return Memory.parse(text)
    except ValueError as failure:
        raise HpcTrainError(f"--mem: {failure}") from None


def differences(made: Settings, asked: Settings) -> tuple[str, ...]:
    """Return the options that differ, as `--nodes 2 instead of 4`; empty if none differs."""
    pairs = {
        name: (getattr(made, name), getattr(asked, name)) for name in Settings.__struct_fields__
    }
    return tuple(_difference(name, *pair) for name, pair in pairs.items() if pair[0] != pair[1])


def _difference(name: str, made: object, asked: object) -> str:
    option = "dir" if name == "folder" else name.replace("_", "-")
    if isinstance(made, bool):
        return f"with --{option}" if made else f"without --{option}"
    return f"--{option} {made} instead of {asked}"
