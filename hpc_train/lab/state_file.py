"""The record of the machine's lab: one file in /run, which a reboot removes, like the lab."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hpc_train.atomicfile import write_atomic
from hpc_train.errors import LabError
from hpc_train.lab.daemons import NETNS, Daemon, is_alive
from hpc_train.lab.network import HOST_LINK, PREFIX, namespaces
from hpc_train.lab.settings import Settings
from hpc_train.model.value import Value, decode_unit, encode_unit

RECORD = Path("/run/hpctrain-lab.json")


class Lab(Value, frozen=True, kw_only=True):
    """A lab that was started completely or in part: the data to stop and remove it.

    `made_from`: the namespaces of the process that started it.
    """

    schema: int = 1
    settings: Settings
    slurm_version: str = ""
    made_from: str = ""
    daemons: tuple[Daemon, ...] = ()
    complete: bool = False

    @property
    def profile(self) -> str:
        """The site profile, which exists while the lab is complete."""
        return f"{self.settings.folder}/lab.yaml"


def write(lab: Lab) -> None:
    """Write the record atomically."""
    write_atomic(RECORD, msgspec.json.encode(lab, enc_hook=encode_unit))


def read() -> Lab | None:
    """Return the record, or None if there is no readable one."""
    try:
        return msgspec.json.decode(RECORD.read_bytes(), type=Lab, dec_hook=decode_unit)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def faults(lab: Lab) -> tuple[str, ...]:
    """Return the faults of a lab as texts; empty if it is intact."""
    dead = [f"{daemon.name} has ended" for daemon in lab.daemons if not is_alive(daemon)]
    present = existing_namespaces()
    lost = [f"namespace {n} does not exist" for n in namespaces(lab.settings) if n not in present]
    link = [] if has_host_link() else [f"interface {HOST_LINK} does not exist"]
    conf = Path(lab.settings.folder, "slurm.conf")
    folder = [] if conf.is_file() else [f"{conf} does not exist"]
    begun = [] if lab.complete else ["its start was not completed"]
    return (*begun, *dead, *lost, *link, *folder)


def existing_namespaces() -> tuple[str, ...]:
    """Return the existing namespaces with the lab's name, with or without a record."""
    return tuple(sorted(path.name for path in NETNS.glob(f"{PREFIX}lab*")))


def has_host_link() -> bool:
    """Whether the machine's interface to the lab exists."""
    return Path("/sys/class/net", HOST_LINK).exists()


@contextmanager
def only_one() -> Iterator[None]:
    """Prevent two commands from changing the lab at the same time.

    The lock is a name in the abstract socket namespace; it needs no file and ends with its owner.

    Raises:
        LabError: another command holds it.
    """
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind("\0hpctrain-lab")
        except OSError:
            raise LabError(
                "another `hpctrain lab` command is running", "wait for it, then try again"
            ) from None
        yield
