"""Starts daemons inside the lab's hosts, and waits for them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hpc_train.lab.errors import LabError
from hpc_train.lab.network import namespace
from hpc_train.lab.settings import Settings
from hpc_train.lab.system_programs import SEARCH_PATH
from hpc_train.lab.terminate_processes import NETNS, Daemon, boot_id, is_alive, start_time
from hpc_train.shell import start

# A host of the lab has a host name, an /etc/hosts, and its own shared memory.
# Not `ip netns exec`: it mounts /sys anew, without the cgroups that slurmd looks for.
_ENTER = """\
hostname "$1" && mount --bind "$2" /etc/hosts && mount -t tmpfs -o mode=1777 shm /dev/shm &&
shift 2 && exec "$@"
"""
_LAST_LINES = 5


def launch(
    settings: Settings, host: str, argv: tuple[str, ...], extra: Mapping[str, str] | None = None
) -> Daemon:
    """Start a daemon, in the foreground and in its own session, inside a host of the lab."""
    program = argv[0]
    hosts = f"{settings.folder}/hosts"
    net = f"--net={NETNS / namespace(host)}"
    enter = ("nsenter", net, "unshare", "--uts", "--mount", "sh", "-c", _ENTER, "sh", host, hosts)
    name = program if program != "slurmd" else f"slurmd of {host}"
    return start_daemon(settings.folder, name, (*enter, *argv), extra)


def start_daemon(
    folder: str, name: str, argv: tuple[str, ...], extra: Mapping[str, str] | None = None
) -> Daemon:
    """Start a daemon whose configuration and log are in a folder."""
    # A daemon must not inherit the environment of the user's shell.
    environment = {
        "PATH": SEARCH_PATH,
        "HOME": os.environ.get("HOME", "/"),
        "SLURM_CONF": f"{folder}/slurm.conf",
        **(extra or {}),
    }
    process = start(argv, output_of(folder, name), environment)
    started = start_time(process.pid) or 0
    return Daemon(name=name, pid=process.pid, started=started, boot=boot_id())


def output_of(folder: str, name: str) -> Path:
    """Return the file with the output of a daemon."""
    return Path(folder, "log", f"{name.replace(' of ', '.')}.out")


def wait_for(
    folder: str,
    daemon: Daemon,
    ready: Callable[[], bool],
    within_s: float,
) -> None:
    """Wait until a daemon is ready.

    Raises:
        LabError: it ended, or did not become ready in time; with its last lines.
    """
    deadline = time.monotonic() + within_s
    while not ready():
        check_alive(folder, daemon)
        if time.monotonic() > deadline:
            late = f"{daemon.name} did not start within {within_s:.0f} s"
            raise LabError(late + last_words(folder, daemon))
        time.sleep(0.1)


def check_alive(folder: str, daemon: Daemon) -> None:
    """Check that a daemon is running.

    Raises:
        LabError: it has ended; with its last lines.
    """
    if not is_alive(daemon):
        raise LabError(f"{daemon.name} ended immediately{last_words(folder, daemon)}")


def last_words(folder: str, daemon: Daemon) -> str:
    """Return the last lines that a daemon printed, to be appended to a message."""
    try:
        text = output_of(folder, daemon.name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if line.strip()][-_LAST_LINES:]
    return "".join(f"\n  {line}" for line in lines)
