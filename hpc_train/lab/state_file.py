"""The state file of a running lab, and what `lab status` shows of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hpc_train.base.errors import LabError
from hpc_train.base.files import write_atomic
from hpc_train.base.value import Value, decode_unit, encode_unit
from hpc_train.lab import state_file
from hpc_train.lab.daemons import NETNS, Daemon, is_alive, members
from hpc_train.lab.network import ask, namespace, namespaces
from hpc_train.lab.settings import MOST_LABS, Settings
from hpc_train.lab.slurm_programs import slurm

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


def made_from() -> str:
    """Return the network and process namespaces of this process."""
    return " ".join(str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("net", "pid"))


def is_live(lab: Lab) -> bool:
    """Whether any process of a lab still runs, also one that is not visible from here."""
    return any(is_alive(daemon) for daemon in lab.daemons) or munge_answers(lab.settings.folder)


def munge_answers(folder: str) -> bool:
    """Whether a process listens on the munge socket of a lab's folder."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(f"{folder}/munge/socket")
        except OSError:
            return False
    return True


def check_within_reach(lab: Lab) -> None:
    """Refuse to change a running lab if only a part of it is visible from here.

    Raises:
        LabError: it was started from another network or process namespace.
    """
    if lab.made_from not in ("", made_from()) and is_live(lab):
        raise LabError(
            f"the lab in {lab.settings.folder} is up, in another container or network namespace",
            f"where it was started: hpctrain lab down --dir {lab.settings.folder}",
        )


def check_unclaimed(settings: Settings) -> None:
    """Check that no lab with this folder or number runs without a readable record.

    The record may have been removed, or written by another version of hpctrain.

    Raises:
        LabError: one runs; the hint is the command that stops it.
    """
    said = f"and {state_file.record(settings)} does not describe it"
    if munge_answers(settings.folder):
        raise LabError(f"a lab is up in {settings.folder}, {said}", "hpctrain lab down   stops it")
    alive = sorted(members(state_file.existing_namespaces(settings.number)))
    if alive:
        names = ", ".join(f"{_name(pid)} (process {pid})" for pid in alive[:3])
        raise LabError(
            f"a lab is up on this machine, {said}: {names}", "hpctrain lab down   stops it"
        )


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "ended"


class LabJob(Value, frozen=True, kw_only=True):
    """A job in the queue."""

    id: str
    name: str
    state: str
    nodes: str


class LabState(Value, frozen=True, kw_only=True):
    """State of a lab; nodes and jobs are unknown if its controller does not run."""

    faults: tuple[str, ...]
    nodes: dict[str, str]
    jobs: tuple[LabJob, ...]


def state_of(lab: Lab) -> LabState:
    """Query the state of the lab."""
    faults = state_file.faults(lab)
    # Without its controller every query would wait for many seconds.
    if any(fault.startswith(("slurmctld", "munged", "interface", "namespace")) for fault in faults):
        return LabState(faults=faults, nodes={}, jobs=())
    return LabState(faults=faults, nodes=node_states(lab.settings), jobs=_jobs(lab.settings))


def node_states(settings: Settings) -> dict[str, str]:
    """Return the state of each node, as sinfo prints it; empty if Slurm does not answer."""
    done = ask(slurm(settings, "sinfo", "-h", "-N", "-o", "%N %T"))
    words = (line.split() for line in done.stdout.splitlines())
    return {name: state for name, state, *_ in words}


def _jobs(settings: Settings) -> tuple[LabJob, ...]:
    done = ask(slurm(settings, "squeue", "-h", "-o", "%i|%T|%N|%j"))
    rows = (line.split("|", 3) for line in done.stdout.splitlines())
    return tuple(
        LabJob(id=i, state=state, nodes=nodes, name=name) for i, state, nodes, name in rows
    )
