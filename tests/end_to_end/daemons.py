"""Kill daemons of the lab and start them again; its record stays right, so that it can end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hpc_train.lab import state_file
from hpc_train.lab.daemons import is_alive, members, namespace
from hpc_train.lab.settings import CONTROLLER
from hpc_train.lab.state_file import Lab
from tests.submissions.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
CONTROLLER_DAEMON, ACCOUNTING_DAEMON = "slurmctld", "slurmdbd"
_LAUNCH = """\
import os
import sys
import msgspec
from hpc_train.lab import state_file
from hpc_train.lab.daemons import launch
name, host, *argv = sys.argv[1:]
lab = state_file.read()
extra = {name: os.environ[name] for name in ["MYSQL_UNIX_PORT"] if name in os.environ}
fresh = launch(lab.settings, host, tuple(argv), extra)
fresh = msgspec.structs.replace(fresh, name=name)
others = [daemon for daemon in lab.daemons if daemon.name != name]
state_file.write(msgspec.structs.replace(lab, daemons=(*others, fresh)))
"""


def stop_controller() -> None:
    """Stop slurmctld as for a restart, so that it saves what it knows."""
    _stop(CONTROLLER_DAEMON)


def start_controller() -> None:
    """Start slurmctld again, with the state that it saved."""
    conf = f"{_lab().settings.folder}/slurm.conf"
    _start(CONTROLLER_DAEMON, CONTROLLER, CONTROLLER_DAEMON, "-D", "-i", "-f", conf)


def stop_accounting() -> None:
    """Stop slurmdbd."""
    _stop(ACCOUNTING_DAEMON)


def start_accounting() -> None:
    """Start slurmdbd again."""
    socket = f"{_lab().settings.folder}/db/socket"
    _start(ACCOUNTING_DAEMON, CONTROLLER, ACCOUNTING_DAEMON, "-D", MYSQL_UNIX_PORT=socket)


def kill_slurmd(node: str) -> None:
    """Kill the slurmd of a node, and nothing of its jobs."""
    _stop(f"slurmd of {node}", signal.SIGKILL)


def start_slurmd(node: str) -> None:
    """Start the slurmd of a node again; it finds the jobs that still run there."""
    conf = f"{_lab().settings.folder}/slurm.conf"
    _start(f"slurmd of {node}", node, "slurmd", "-D", "-f", conf, "-N", node)


def set_link(node: str, network: str, state: str) -> None:
    """Set the port of a node on a network's switch `up` or `down`."""
    port = ("link", "set", f"{node}-{network}", state)
    subprocess.run(["ip", "-n", namespace(CONTROLLER), *port], check=True)


def kill_node(node: str) -> None:
    """Kill everything on a node, jobs included, as a power cut would."""
    # All at once: a slurmstepd that outlives its job by a moment would report the job as failed,
    # and a script that outlives its command would record its end. A process may start another one
    # until it is stopped itself.
    stopped: set[int] = set()
    while new := set(members([namespace(node)])) - stopped:
        _signal(new, signal.SIGSTOP)
        stopped |= new
    # The eldest first: when slurmd has ended, Linux lets its stopped slurmstepd go on, which would
    # see the end of its tasks.
    _signal(sorted(stopped, key=_age), signal.SIGKILL)
    wait_for(lambda: not members([namespace(node)]))


def _age(pid: int) -> tuple[int, int]:
    """Return when a process was started, in ticks, and its number."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0, pid
    return int(stat.rpartition(")")[2].split()[19]), pid


def _signal(pids: Iterable[int], sign: signal.Signals) -> None:
    for pid in pids:
        # A command of a moment ago may have ended by itself.
        with suppress(ProcessLookupError):
            os.kill(pid, sign)


def _stop(name: str, how: signal.Signals = signal.SIGTERM) -> None:
    (daemon,) = [one for one in _lab().daemons if one.name == name]
    os.kill(daemon.pid, how)
    wait_for(lambda: not is_alive(daemon))


def _start(name: str, host: str, *argv: str, **extra: str) -> None:
    """Start it from a process that ends at once, as `lab up` does, so that it is nobody's child."""
    command = [sys.executable, "-c", _LAUNCH, name, host, *argv]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **extra})


def _lab() -> Lab:
    lab = state_file.read()
    assert lab is not None
    return lab
