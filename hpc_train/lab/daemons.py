"""The daemons and the network of the lab's Slurm, and its accounting."""

import os
import re
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.base.errors import LabError
from hpc_train.base.processes import Finished, run, start
from hpc_train.base.values import Value
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

# A host of the lab has a host name, an /etc/hosts, and its own shared memory.
# `ip netns exec` would mount a new /sys, without the cgroups that slurmd needs.
_ENTER = """\
hostname "$1" && mount --bind "$2" /etc/hosts && mount -t tmpfs -o mode=1777 shm /dev/shm &&
shift 2 && exec "$@"
"""
_LAST_LINES = 5
NETNS = Path("/run/netns")


class Daemon(Value, frozen=True, kw_only=True):
    """A started daemon; the process id alone does not identify it, because ids are reused.

    The start time counts from the boot, so the boot id is recorded as well.
    """

    name: str
    pid: int
    started: int
    boot: str = ""


def boot_id() -> str:
    """Return the id of the current boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_time(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field, the program's name, may contain blanks and brackets.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def is_alive(daemon: Daemon) -> bool:
    """Whether this process still exists."""
    return daemon.boot in ("", boot_id()) and start_time(daemon.pid) == daemon.started


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
    """Start a daemon whose configuration and log are in the folder of a lab or twin."""
    # A daemon must not inherit the environment of the user's shell.
    environment = {
        "PATH": search_path(),
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
        LabError: it ended, or was not ready in time; the message has the last lines of its output.
    """
    deadline = time.monotonic() + within_s
    while not ready():
        check_alive(folder, daemon)
        if time.monotonic() > deadline:
            late = f"{daemon.name} did not start within {within_s:.0f} s"
            raise LabError(late + last_output(folder, daemon))
        time.sleep(0.1)


def check_alive(folder: str, daemon: Daemon) -> None:
    """Check that a daemon is running.

    Raises:
        LabError: it has ended; the message has the last lines of its output.
    """
    if not is_alive(daemon):
        raise LabError(f"{daemon.name} ended immediately{last_output(folder, daemon)}")


def last_output(folder: str, daemon: Daemon) -> str:
    """Return the last lines that a daemon printed, to be appended to a message."""
    try:
        text = output_of(folder, daemon.name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if line.strip()][-_LAST_LINES:]
    return "".join(f"\n  {line}" for line in lines)


def members(namespaces: Iterable[str]) -> set[int]:
    """Return the ids of the processes inside network namespaces given by name."""
    wanted = {one for name in namespaces if (one := _identity(NETNS / name)) is not None}
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return {pid for pid in pids if _identity(Path(f"/proc/{pid}/ns/net")) in wanted}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def end(alive: Callable[[], set[int]], grace_s: float) -> bool:
    """Terminate processes, then kill those that remain; return whether all have ended."""
    _signal(alive(), signal.SIGTERM)
    if _await(alive, grace_s):
        return True
    for _ in range(10):
        _signal(alive(), signal.SIGKILL)
        if _await(alive, 0.5):
            return True
    return False


def _await(alive: Callable[[], set[int]], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def write_key(folder: Path) -> None:
    """Write a new munge key that only its owner can read."""
    key = folder / "munge" / "key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))


def munged_command(folder: str) -> tuple[str, ...]:
    """Return the command line of a munged that has all its files in a folder."""
    munge = f"{folder}/munge"
    files = ("key-file", "key"), ("pid-file", "pid"), ("seed-file", "seed"), ("log-file", "log")
    options = [f"--{option}={munge}/{name}" for option, name in files]
    return ("munged", "--foreground", f"--socket={munge}/socket", *options)


def start_database(folder: str, run: Callable[..., Daemon]) -> None:
    """Start a database, and the slurmdbd whose configuration is in a folder.

    `run` starts a daemon: the words of its command line, and more variables.

    Raises:
        LabError: one of them does not start.
    """
    data, socket = f"{folder}/db", f"{folder}/db/socket"
    must(("mariadb-install-db", "--user=root", f"--datadir={data}", "--skip-test-db"), 60)
    database = run(
        "mariadbd",
        "--no-defaults",
        "--user=root",
        f"--datadir={data}",
        f"--socket={socket}",
        f"--pid-file={data}/mariadb.pid",
        "--skip-networking",
        # slurmdbd requires a long lock timeout; the data need not survive a power failure.
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=0",
    )
    ping = ("mariadb-admin", f"--socket={socket}", "--user=root", "ping")
    wait_for(folder, database, lambda: ask(ping).returncode == 0, 60)
    # slurmdbd has no setting for the socket of its database; the client library reads this one.
    service = run("slurmdbd", "-D", MYSQL_UNIX_PORT=socket)
    asks = slurm(folder, "sacctmgr", "-n", "list", "cluster")
    wait_for(folder, service, lambda: ask(asks).returncode == 0, 60)


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
