"""ssh to the hosts of a list: one connection for each host, which all commands share.

User, key, port and ProxyJump of a host are those of ~/.ssh/config. Nothing here changes how ssh
checks the keys of hosts. A remote command is always `bash -s`: the shell of the user on the host
would split and expand its words again.
"""

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

import msgspec

from hpc_train.base.data_folders import data_file
from hpc_train.base.files import read_owned
from hpc_train.base.processes import Exchanged, exchange
from hpc_train.base.values import Value
from hpc_train.runs.json_files import write_file
from hpc_train.runs.run import RunFolder

T = TypeVar("T")
# sshd refuses more than 10 new connections at once at random (MaxStartups 10:30:100).
MOST_AT_ONCE = 8
PATIENCE_S = 60.0
_OPTIONS = (
    *("-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=2"),
)
# A path of a socket has at most 107 bytes; ssh adds 57 to this folder.
_LONGEST_FOLDER = 48
_BUSY = ("kex_exchange_identification", "ssh_exchange_identification", "Connection reset by")
_TRIES = 4
# Hosts that were called, and the lock of the first call of each.
_CALLED: set[str] = set()
_FIRST_CALLS: dict[str, Lock] = {}
_LOCK = Lock()
_BEGIN, _END = b"ANSWER\n", b"END\n"
_HINTS = {
    "Host key verification failed": "ssh does not know the key of this host, or it has changed",
    "Permission denied": "ssh has no key that the host accepts (ssh-copy-id)",
    "Could not resolve hostname": "add it to ~/.ssh/config",
}


class Answer(NamedTuple):
    """What a host said: lines of a word and its text; or why there is no answer."""

    lines: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    problem: str = ""

    def get(self, word: str) -> str | None:
        """Return the text of the last line that begins with a word; None without one."""
        return next((text for one, text in reversed(self.lines) if one == word), None)


def call(host: str, verb: str, *words: str, given: bytes = b"", within_s: float = 0) -> Answer:
    """Call a function of `on_host.sh` on a host; `given` is what it reads from stdin."""
    argv = ("ssh", *options(), "-T", "--", host, "bash -s")
    text = f"set -- {shlex.join((verb, *words))}\n".encode() + data_file("on_host.sh").read_bytes()
    for pause_s in (*(2.0**n for n in range(_TRIES - 1)), 0):
        with _first_alone(host):
            done = exchange(argv, text + given, within_s or PATIENCE_S)
        if not (pause_s and done.returncode and any(word in done.stderr for word in _BUSY)):
            break
        time.sleep(pause_s)
    return _answer(done)


@contextmanager
def _first_alone(host: str) -> Iterator[None]:
    """Let the first call of a host end before others begin: each would make its own connection."""
    with _LOCK:
        first = _FIRST_CALLS.setdefault(host, Lock())
    if host not in _CALLED:
        with first:
            if host not in _CALLED:
                try:
                    yield
                finally:
                    _CALLED.add(host)
                return
    yield


def _answer(done: Exchanged) -> Answer:
    """Read an answer; it is whole if its last line is there."""
    _, begun, body = done.stdout.partition(_BEGIN)
    if not begun or not body.endswith(_END):
        return Answer(problem=_problem(done))
    body = body[: -len(_END)]
    words = (line.partition(" ") for line in body.decode(errors="replace").splitlines())
    return Answer(lines=tuple((word, text) for word, _, text in words), body=body)


def _problem(done: Exchanged) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    said = lines[-1] if lines else f"ssh ended with exit code {done.returncode}"
    hint = next((text for word, text in _HINTS.items() if word in done.stderr), "")
    return f"{said} ({hint})" if hint else said


def at_once(call_one: Callable[[T], Answer], items: Iterable[T]) -> list[Answer]:
    """Call for several hosts at once, at most eight; return the answers in the order of `items`."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as threads:
        return list(threads.map(call_one, items))


def options() -> tuple[str, ...]:
    """Return the options of each ssh."""
    folder = _socket_folder()
    if folder is None:
        return _OPTIONS
    shared = ("ControlMaster=auto", f"ControlPath={folder}/%C", "ControlPersist=60")
    return (*_OPTIONS, *(word for option in shared for word in ("-o", option)))


@cache
def _socket_folder() -> Path | None:
    """Return a folder that only this user may use; None if there is none, or its path is long."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    for folder in (Path(runtime, "hpctrain-ssh"), Path(f"/tmp/hpctrain-ssh-{os.getuid()}")):  # noqa: S108
        if folder.is_absolute() and len(os.fsencode(folder)) <= _LONGEST_FOLDER and _own(folder):
            return folder
    return None


def _own(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return (found.st_uid, found.st_mode & 0o177777) == (os.getuid(), 0o040700)


HOSTS_FILE = "hosts.json"


class StartedHost(Value, frozen=True, kw_only=True):
    """A host of a run: its names, the run's folder on it, and its boot when the lock was taken."""

    name: str
    address: str
    folder: str
    boot: str


class StartedHosts(Value, frozen=True, kw_only=True):
    """The hosts of a run, in the order of their node ranks, and the port of the rendezvous."""

    hosts: tuple[StartedHost, ...]
    port: str = ""

    def each(self, call_one: Callable[[StartedHost], Answer]) -> list[Answer]:
        """Call for all hosts at once; return the answers in the order of node ranks."""
        return at_once(call_one, self.hosts)


def write_hosts(run: RunFolder, hosts: StartedHosts) -> None:
    """Write hosts.json atomically.

    Raises:
        StoreError: it cannot be written.
    """
    write_file(run.path / HOSTS_FILE, msgspec.json.encode(hosts) + b"\n")


def read_hosts(run: RunFolder) -> StartedHosts | None:
    """Return the hosts of a run; None if it was not started on any.

    Those of another user are not: ssh would call an address that he chose.
    """
    try:
        content, trusted = read_owned(run.path / HOSTS_FILE)
        return msgspec.json.decode(content, type=StartedHosts) if trusted else None
    except (OSError, msgspec.DecodeError):
        return None
