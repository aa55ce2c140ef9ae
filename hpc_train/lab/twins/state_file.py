"""The records of the machine's twins: one file each in /run, which a reboot removes."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hpc_train.base.files import write_atomic
from hpc_train.base.value import Value
from hpc_train.lab.daemons import Daemon, is_alive
from hpc_train.lab.twins.slurm_conf import TwinPaths

RECORDS = Path("/run/hpctrain-twins")


class Twin(Value, frozen=True, kw_only=True):
    """A twin that was started completely or in part: the data to stop and remove it."""

    schema: int = 1
    name: str
    place: TwinPaths
    daemons: tuple[Daemon, ...] = ()
    complete: bool = False
    assumptions: tuple[str, ...] = ()

    @property
    def env(self) -> str:
        """Return the path of the lines for a shell."""
        return f"{self.place.folder}/env"

    @property
    def slurm_conf(self) -> str:
        """Return the path of its slurm.conf."""
        return f"{self.place.folder}/slurm.conf"


def read(name: str) -> Twin | None:
    """Return a twin, or None if there is no readable record."""
    try:
        return msgspec.json.decode(_file(name).read_bytes(), type=Twin)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def read_all() -> tuple[Twin, ...]:
    """Return all twins, by name."""
    names = sorted(path.stem for path in RECORDS.glob("*.json"))
    return tuple(twin for name in names if (twin := read(name)) is not None)


def write(twin: Twin) -> None:
    """Write the record of a twin atomically."""
    write_atomic(_file(twin.name), msgspec.json.encode(twin))


def forget(twin: Twin) -> None:
    """Remove the record of a twin."""
    _file(twin.name).unlink(missing_ok=True)


def is_running(twin: Twin) -> bool:
    """Whether a twin was started completely and all its processes exist."""
    return twin.complete and all(is_alive(daemon) for daemon in twin.daemons)


@contextmanager
def locked(what: str) -> Iterator[None]:
    """Hold a lock while a twin is started or stopped; it ends with its owner."""
    RECORDS.mkdir(mode=0o755, exist_ok=True)
    with (RECORDS / f".{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _file(name: str) -> Path:
    return RECORDS / f"{name}.json"
