"""The records of the machine's labs: a file each in /run, which a reboot removes, like the labs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hpc_train.base.errors import LabError
from hpc_train.base.files import write_atomic
from hpc_train.base.value import Value, decode_unit, encode_unit
from hpc_train.lab.daemons import NETNS, Daemon, is_alive
from hpc_train.lab.network import namespace, namespaces
from hpc_train.lab.settings import MOST_LABS, Settings

RECORDS = Path("/run")


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
        return f"{self.settings.folder}/{self.settings.name}.yaml"


def record(settings: Settings) -> Path:
    """Return the path of a lab's record."""
    return RECORDS / f"hpctrain-{settings.name}.json"


def write(lab: Lab) -> None:
    """Write the record of a lab atomically."""
    write_atomic(record(lab.settings), msgspec.json.encode(lab, enc_hook=encode_unit))


def read(number: int = 1) -> Lab | None:
    """Return a lab, or None if there is no readable record."""
    path = record(Settings(number=number))
    try:
        return msgspec.json.decode(path.read_bytes(), type=Lab, dec_hook=decode_unit)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def read_all() -> tuple[Lab, ...]:
    """Return the labs that have a readable record."""
    return tuple(lab for number in range(1, MOST_LABS + 1) if (lab := read(number)))


def faults(lab: Lab) -> tuple[str, ...]:
    """Return the faults of a lab as texts; empty if it is intact."""
    dead = [f"{daemon.name} has ended" for daemon in lab.daemons if not is_alive(daemon)]
    present, host_link = existing_namespaces(lab.settings.number), lab.settings.host_link
    lost = [f"namespace {n} does not exist" for n in namespaces(lab.settings) if n not in present]
    link = [] if has_host_link(lab.settings) else [f"interface {host_link} does not exist"]
    conf = Path(lab.settings.folder, "slurm.conf")
    folder = [] if conf.is_file() else [f"{conf} does not exist"]
    begun = [] if lab.complete else ["its start was not completed"]
    return (*begun, *dead, *lost, *link, *folder)


def existing_namespaces(number: int) -> tuple[str, ...]:
    """Return the existing namespaces with the names of a lab, with or without a record."""
    return tuple(sorted(path.name for path in NETNS.glob(namespace(number, "lab*"))))


def has_host_link(settings: Settings) -> bool:
    """Whether the machine's interface to the lab exists."""
    return Path("/sys/class/net", settings.host_link).exists()


@contextmanager
def only_one() -> Iterator[None]:
    """Prevent two commands from changing labs at the same time.

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
