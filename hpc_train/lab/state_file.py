"""The state file of a running lab, and what `lab status` shows of it."""

from pathlib import Path

import msgspec

from hpc_train.base.files import write_atomic
from hpc_train.base.values import Value, decode_unit, encode_unit
from hpc_train.lab.daemons import NETNS, Daemon, ask, is_alive, namespace, namespaces, slurm
from hpc_train.lab.settings import HOST_LINK, NAME, Settings

RECORD = Path(f"/run/hpctrain-{NAME}.json")
# Held while a command changes the lab.
LOCK = Path(f"/run/.hpctrain-{NAME}.lock")


class Lab(Value, frozen=True, kw_only=True):
    """A lab that was started completely or in part: the data to stop and remove it."""

    schema: int = 1
    settings: Settings
    slurm_version: str = ""
    daemons: tuple[Daemon, ...] = ()
    complete: bool = False

    @property
    def profile(self) -> str:
        """The site profile, which exists while the lab is complete."""
        return f"{self.settings.folder}/{NAME}.yaml"


def write(lab: Lab) -> None:
    """Write the record of the lab atomically."""
    write_atomic(RECORD, msgspec.json.encode(lab, enc_hook=encode_unit))


def read() -> Lab | None:
    """Return the lab, or None if there is no readable record."""
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
    """Return the existing namespaces with the names of the lab, with or without a record."""
    return tuple(sorted(path.name for path in NETNS.glob(namespace("lab*"))))


def has_host_link() -> bool:
    """Whether the machine's interface to the lab exists."""
    return Path("/sys/class/net", HOST_LINK).exists()


class LabState(Value, frozen=True, kw_only=True):
    """State of a lab; nodes and jobs are unknown if its controller does not run.

    A job has `id`, `name`, `state` and `nodes`.
    """

    faults: tuple[str, ...]
    nodes: dict[str, str]
    jobs: list[dict[str, str]]


def state_of(lab: Lab) -> LabState:
    """Query the state of the lab."""
    found = faults(lab)
    # Without its controller every query would wait for many seconds.
    if any(fault.startswith(("slurmctld", "munged", "interface", "namespace")) for fault in found):
        return LabState(faults=found, nodes={}, jobs=[])
    return LabState(faults=found, nodes=node_states(lab.settings), jobs=_jobs(lab.settings))


def node_states(settings: Settings) -> dict[str, str]:
    """Return the state of each node, as sinfo prints it; empty if Slurm does not answer."""
    done = ask(slurm(settings.folder, "sinfo", "-h", "-N", "-o", "%N %T"))
    words = (line.split() for line in done.stdout.splitlines())
    return {name: state for name, state, *_ in words}


def _jobs(settings: Settings) -> list[dict[str, str]]:
    done = ask(slurm(settings.folder, "squeue", "-h", "-o", "%i|%T|%N|%j"))
    rows = (line.split("|", 3) for line in done.stdout.splitlines())
    return [dict(zip(("id", "state", "nodes", "name"), row, strict=True)) for row in rows]
