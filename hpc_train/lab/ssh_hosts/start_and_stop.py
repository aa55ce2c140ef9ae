"""Starts and stops the hosts: networks, files, one sshd each, the profile."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from hpc_train.atomicfile import write_atomic
from hpc_train.errors import LabError
from hpc_train.lab.daemons import NETNS, Daemon, boot_id, end, is_alive, members, start_time
from hpc_train.lab.profile import check_place, install, profile_path, remove
from hpc_train.lab.requirements import check_root, check_ssh_programs, overlap
from hpc_train.lab.run_program import ask, must
from hpc_train.lab.slurm_programs import search_path
from hpc_train.lab.ssh_hosts.files import new_boot, profile_text, write_files
from hpc_train.lab.ssh_hosts.settings import (
    HOST_LINK,
    PREFIX,
    SITE,
    SUBNET,
    SshHost,
    hosts_of,
    networks,
)
from hpc_train.model.value import Value
from hpc_train.subprocesses import start as start_process

RECORD = Path("/run/hpctrain-ssh.json")
_GRACE_S = 2.0
_WITHIN_S = 30.0
_SSH_PORT = 22
# Bound over a host's own files; its first process starts sshd and collects orphans.
_ENTER = """\
set -e
hostname "$1"
cd "$2/$1"
mount --bind passwd /etc/passwd
mount --bind ../hosts /etc/hosts
mount --bind tmp /tmp
mount --bind boot_id /proc/sys/kernel/random/boot_id
# What this machine does at the start of a shell may put other programs first on PATH.
for file in /etc/bash.bashrc /etc/profile; do
  [ ! -e "$file" ] || mount --bind empty "$file"
done
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mkdir /run/sshd
"$3" -D -e -f sshd_config &
wait
"""


class SshLab(Value, frozen=True, kw_only=True):
    """The hosts that were started completely or in part: the data to stop and remove them."""

    schema: int = 1
    folder: str
    profile: str
    hosts: tuple[SshHost, ...]
    daemons: tuple[Daemon, ...] = ()
    profile_folders: tuple[str, ...] = ()
    complete: bool = False


class StartedHosts(Value, frozen=True, kw_only=True):
    """The running hosts, and whether this call started them."""

    lab: SshLab
    made: bool


def read() -> SshLab | None:
    """Return the record of the hosts, or None if there is no readable one."""
    try:
        return msgspec.json.decode(RECORD.read_bytes(), type=SshLab)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def is_running(lab: SshLab) -> bool:
    """Whether all hosts run."""
    return lab.complete and all(is_alive(daemon) for daemon in lab.daemons)


def start(count: int, folder: str) -> StartedHosts:
    """Start hosts, unless as many are running; the remains of broken ones are removed first.

    Raises:
        LabError: they cannot be started; nothing is left behind.
    """
    check_root()
    check_ssh_programs()
    found = read()
    if found is not None and is_running(found):
        if (len(found.hosts), found.folder) == (count, folder):
            return StartedHosts(lab=found, made=False)
        raise LabError(
            f"{len(found.hosts)} hosts are up in {found.folder}", "hpctrain lab down --ssh"
        )
    if found is not None:
        clear(found)
    _check_free(folder)
    return StartedHosts(lab=_make(hosts_of(count), folder), made=True)


def _check_free(folder: str) -> None:
    if os.path.lexists(folder):
        raise LabError(f"{folder} exists", "use another folder: --dir")
    for line in must(("ip", "-4", "route", "show", "table", "all")).splitlines():
        if overlap(line, (SUBNET,)):
            raise LabError(
                f"the network {SUBNET} of the hosts is in use here: {line.strip()}",
                "remove that route or interface; the addresses of the hosts are fixed",
            )
    check_place(_profile())


def _make(hosts: tuple[SshHost, ...], folder: str) -> SshLab:
    lab = SshLab(folder=folder, profile=str(_profile()), hosts=hosts)
    with ExitStack() as undo:
        undo.callback(lambda: clear(read() or lab))
        _write(lab)
        try:
            write_files(Path(folder), hosts)
        except OSError as failure:
            raise LabError(f"{failure.filename}: {failure.strerror}") from None
        for command in networks(hosts):
            must(command)
        for host in hosts:
            lab = switch_on(lab, host)
        _await_answers(hosts)
        text = profile_text(lab.hosts, datetime.date.today().isoformat())
        folders = install(Path(lab.profile), text)
        lab = msgspec.structs.replace(lab, profile_folders=folders, complete=True)
        _write(lab)
        undo.pop_all()
    return lab


def switch_on(lab: SshLab, host: SshHost) -> SshLab:
    """Boot a host; return the lab with its first process."""
    new_boot(Path(lab.folder), host)
    sshd = shutil.which("sshd", path=search_path()) or "sshd"
    argv = (
        *("nsenter", f"--net={NETNS / host.namespace}", "unshare", "--uts", "--mount", "--pid"),
        *("--fork", "--kill-child", "--mount-proc"),
        *("bash", "-c", _ENTER, "bash", host.name, lab.folder, sshd),
    )
    log = Path(lab.folder, "log", f"{host.name}.out")
    process = start_process(argv, log, {"PATH": search_path(), "HOME": "/root"})
    started = start_time(process.pid) or 0
    daemon = Daemon(name=host.name, pid=process.pid, started=started, boot=boot_id())
    others = tuple(one for one in lab.daemons if one.name != host.name)
    lab = msgspec.structs.replace(lab, daemons=(*others, daemon))
    _write(lab)
    return lab


def switch_off(lab: SshLab, host: SshHost) -> None:
    """Cut the power of a host: all its processes end at once.

    Raises:
        LabError: a process cannot be ended.
    """
    if not end(lambda: members((host.namespace,)), 0.0):
        raise LabError(f"{host.name} cannot be switched off")


def _await_answers(hosts: Sequence[SshHost]) -> None:
    for host in hosts:
        _await_answer(host)


def _await_answer(host: SshHost) -> None:
    """Wait until sshd of a host accepts a connection.

    Raises:
        LabError: it does not.
    """
    tries = int(_WITHIN_S * 10)
    for _ in range(tries):
        try:
            socket.create_connection((host.address, _SSH_PORT), timeout=1.0).close()
        except OSError:
            ask(("sleep", "0.1"))
        else:
            return
    raise LabError(f"sshd of {host.name} does not answer", "see the folder log")


def _profile() -> Path:
    return profile_path().with_name(f"{SITE}.yaml")


def _write(lab: SshLab) -> None:
    write_atomic(RECORD, msgspec.json.encode(lab))


def stop() -> str:
    """Stop the hosts; return their folder; an empty text if there were none.

    Raises:
        LabError: something cannot be removed.
    """
    check_root()
    found = read()
    if found is not None:
        clear(found)
    return found.folder if found else ""


def clear(lab: SshLab) -> None:
    """End the processes of the hosts, then remove their networks and files.

    Raises:
        LabError: a process cannot be ended.
    """
    names = [path.name for path in NETNS.glob(f"{PREFIX}*")]

    def alive() -> set[int]:
        return {one.pid for one in lab.daemons if is_alive(one)} | members(names)

    if not end(alive, 0.0):
        raise LabError(f"these processes of the hosts cannot be ended: {sorted(alive())}")
    if Path("/sys/class/net", HOST_LINK).exists():
        ask(("ip", "link", "del", HOST_LINK))
    for name in names:
        ask(("ip", "netns", "del", name))
    remove(Path(lab.profile), lab.profile_folders)
    folder = Path(lab.folder)
    if (folder / "ssh_config").is_file():
        shutil.rmtree(folder)
    RECORD.unlink(missing_ok=True)
