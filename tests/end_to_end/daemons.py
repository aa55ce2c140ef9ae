"""Kill daemons of the lab and start them again; its record stays right, so that it can end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hpc_train.lab import state_file
from hpc_train.lab.daemons import is_alive, members
from hpc_train.lab.network import namespace
from hpc_train.lab.settings import CONTROLLER
from hpc_train.lab.state_file import Lab
from tests.pipeline.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
CONTROLLER_DAEMON = "slurmctld"
_LAUNCH = """\
import sys
import msgspec
from hpc_train.lab import state_file
from hpc_train.lab.daemons import launch
name, host, *argv = sys.argv[1:]
lab = state_file.read()
fresh = launch(lab.settings, host, (*argv, "-f", f"{lab.settings.folder}/slurm.conf"))
fresh = msgspec.structs.replace(fresh, name=name)
others = [daemon for daemon in lab.daemons if daemon.name != name]
state_file.write(msgspec.structs.replace(lab, daemons=(*others, fresh)))
"""


def stop_controller() -> None:
    """Stop slurmctld as for a restart, so that it saves what it knows."""
    (daemon,) = [one for one in _lab().daemons if one.name == CONTROLLER_DAEMON]
    os.kill(daemon.pid, signal.SIGTERM)
    wait_for(lambda: not is_alive(daemon))


def start_controller() -> None:
    """Start slurmctld again, with the state that it saved."""
    _start(CONTROLLER_DAEMON, CONTROLLER, CONTROLLER_DAEMON, "-D", "-i")


def kill_node(node: str) -> None:
    """Kill everything on a node, jobs included, as a power cut would."""
    # All at once: a slurmstepd that outlives its job by a moment would report the job as failed,
    # and a script that outlives its command would record its end. A process may start another one
    # until it is stopped itself.
    stopped: set[int] = set()
    while new := set(members([namespace(node)])) - stopped:
        _signal(new, signal.SIGSTOP)
        stopped |= new
    _signal(stopped, signal.SIGKILL)
    wait_for(lambda: not members([namespace(node)]))


def _signal(pids: Iterable[int], sign: signal.Signals) -> None:
    for pid in pids:
        # A command of a moment ago may have ended by itself.
        with suppress(ProcessLookupError):
            os.kill(pid, sign)


def _start(name: str, host: str, *argv: str) -> None:
    """Start it from a process that ends at once, as `lab up` does, so that it is nobody's child."""
    subprocess.run([sys.executable, "-c", _LAUNCH, name, host, *argv], check=True, cwd=ROOT)


def _lab() -> Lab:
    lab = state_file.read()
    assert lab is not None
    return lab
