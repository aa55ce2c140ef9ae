"""Machines that ssh reaches, as namespaces of this one: a network, processes and an sshd each."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hpc_train.base.processes import start
from hpc_train.lab.daemons import NETNS, ask, end, members, must, search_path
from tests.servers.networks import NetworkHost, join, remove
from tests.submissions.waiting import wait_for

SITE = "lab-hosts"
_PREFIX = "hpctrain-ssh-"
_SWITCH = f"{_PREFIX}switch"
_LINK = "hpctssh"
_SSHD = """\
ListenAddress {host.address}
HostKey {folder}/{host.name}/key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
SetEnv PATH={path}
Subsystem sftp internal-sftp
"""
_SSH = """\
Host {names}
  User root
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
{addresses}
"""
_PROFILE = """\
schema: 1
name: {site}
description: hosts on this one machine
scheduler: hosts
hosts:
{hosts}
sources:
  - {{what: the settings of the tests, date: 2026-01-01, confidence: high}}
launchers:
  default: torchrun
  allowed: [torchrun, spawn, mpirun, single]
partitions:
  - name: all
    default: true
    cpus_per_node: {cpus}
    gpus_per_node: 0
poll: 2s
env:
  OMPI_ALLOW_RUN_AS_ROOT: 1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: 1
env_why:
  OMPI_ALLOW_RUN_AS_ROOT: the tests run as root, which mpirun refuses otherwise
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: mpirun requires both variables
"""
ROOT = str(Path(__file__).resolve().parents[2])
# Bound over a host's own files; its first process starts sshd and collects orphans.
_ENTER = """\
set -e
hostname "$1"
cd "$2/$1"
mount --bind passwd /etc/passwd
mount --bind ../hosts /etc/hosts
# A checkout below /tmp stays visible there.
case "$4" in /tmp/*) mkdir -p "tmp${4#/tmp}"; mount --bind "$4" "tmp${4#/tmp}" ;; esac
mount --rbind tmp /tmp
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


class SshHost(NamedTuple):
    """A host: its name for ssh and its address."""

    name: str
    address: str

    @property
    def namespace(self) -> str:
        """Return the name of its network namespace."""
        return f"{_PREFIX}{self.name}"


class SshHosts:
    """Hosts host1, host2, …; `env` of a user has the folder `bin` first on PATH."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.profile = str(folder / "config" / "hpctrain" / f"{SITE}.yaml")
        self.hosts = [SshHost(f"host{n}", f"10.79.0.{n}") for n in range(1, count + 1)]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._write_files()
        remove(_PREFIX)
        ends = [NetworkHost(one.name, one.namespace, f"{one.address}/16") for one in self.hosts]
        join(_SWITCH, ends)
        machine = ("peer", "name", "machine", "netns", _SWITCH)
        must(("ip", "link", "add", _LINK, "type", "veth", *machine))
        must(("ip", "-n", _SWITCH, "link", "set", "machine", "master", "eth0", "up"))
        must(("ip", "addr", "add", "10.79.0.254/16", "dev", _LINK))
        must(("ip", "link", "set", _LINK, "up"))
        self.switch_on_all()

    def stop(self) -> None:
        """End all processes of the hosts, and remove their networks."""
        remove(_PREFIX)
        ask(("ip", "link", "del", _LINK))
        for process in self._processes.values():
            process.wait()

    def plug(self, host: SshHost, *, connected: bool) -> None:
        """Connect a host to its network, or pull its cable."""
        must(("ip", "-n", _SWITCH, "link", "set", host.name, "up" if connected else "down"))

    def switch_off(self, host: SshHost) -> None:
        """Cut the power of a host: all its processes end at once, and no packet says so."""
        self.plug(host, connected=False)
        assert end(lambda: members((host.namespace,)), 0.0)
        self._processes.pop(host.name).wait()

    def switch_on_all(self) -> None:
        """Boot the hosts that are off, and wait until their sshd accept connections."""
        for host in self.hosts:
            process = self._processes.get(host.name)
            if process is None or process.poll() is not None:
                self._boot(host)
        wait_for(lambda: all(map(_answers, self.hosts)))

    def _boot(self, host: SshHost) -> None:
        self.plug(host, connected=True)
        (self.folder / host.name / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        sshd = shutil.which("sshd", path=search_path()) or "sshd"
        argv = (
            *("nsenter", f"--net={NETNS / host.namespace}", "unshare", "--uts", "--mount", "--pid"),
            *("--fork", "--kill-child", "--mount-proc"),
            *("bash", "-c", _ENTER, "bash", host.name, str(self.folder), sshd, ROOT),
        )
        environment = {"PATH": search_path(), "HOME": "/root"}
        self._processes[host.name] = start(argv, self.log(host), environment)

    def log(self, host: SshHost) -> Path:
        """Return the file with what sshd of a host says."""
        return self.folder / f"{host.name}.out"

    def _write_files(self) -> None:
        folder = self.folder
        _key(folder / "key")
        shutil.copy(folder / "key.pub", folder / "authorized_keys")
        known, etc_hosts = [], ["127.0.0.1 localhost\n"]
        for host in self.hosts:
            public = self._write_host(host)
            known.append(f"{host.name},{host.address} {public}")
            etc_hosts.append(f"{host.address} {host.name}\n")
        (folder / "known_hosts").write_text("".join(known))
        (folder / "hosts").write_text("".join(etc_hosts))
        names = " ".join(host.name for host in self.hosts)
        addresses = "\n".join(f"Host {one.name}\n  HostName {one.address}" for one in self.hosts)
        text = _SSH.format(names=names, folder=folder, addresses=addresses)
        (folder / "ssh_config").write_text(text)
        # Nothing of ~/.ssh is changed.
        ssh = folder / "bin" / "ssh"
        ssh.parent.mkdir()
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
        ssh.chmod(0o755)
        Path(self.profile).parent.mkdir(parents=True)
        lines = "\n".join(f"  - {{name: {one.name}, address: {one.address}}}" for one in self.hosts)
        cpus = len(os.sched_getaffinity(0))
        Path(self.profile).write_text(_PROFILE.format(site=SITE, hosts=lines, cpus=cpus))

    def _write_host(self, host: SshHost) -> str:
        """Write the files of a host; return its public key."""
        own = self.folder / host.name
        for part in ("home", "tmp"):
            (own / part).mkdir(parents=True)
        (own / "tmp").chmod(0o1777)
        _key(own / "key")
        config = _SSHD.format(host=host, folder=self.folder, path=_path())
        (own / "sshd_config").write_text(config)
        (own / "empty").touch()
        (own / "passwd").write_text("".join(_users(own / "home")))
        return (own / "key.pub").read_text()


def _key(path: Path) -> None:
    must(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.parent.name, "-f", str(path)))


def _answers(host: SshHost) -> bool:
    try:
        socket.create_connection((host.address, 22)).close()
    except OSError:
        return False
    return True


def _path() -> str:
    """Return the PATH on a host: this Python's folder, and nothing below the home of the user.

    There, another Python may come before that of the system.
    """
    home = f"{Path.home()}/"
    known = (one for one in search_path().split(os.pathsep) if not one.startswith(home))
    return os.pathsep.join(dict.fromkeys((str(Path(sys.executable).parent), *known)))


def _users(home: Path) -> Iterator[str]:
    """Yield the users of this machine, with another home folder of root."""
    for line in Path("/etc/passwd").read_text(encoding="utf-8").splitlines(keepends=True):
        fields = line.split(":")
        yield ":".join((*fields[:5], str(home), "/bin/bash\n")) if fields[0] == "root" else line


@contextmanager
def running_hosts(count: int = 2) -> Iterator[SshHosts]:
    """Start hosts; their files are not in /tmp, of which each host has its own."""
    folder = Path(tempfile.mkdtemp(prefix="hpct-ssh-", dir="/var/tmp"))
    folder.chmod(0o755)
    found = SshHosts(folder, count)
    try:
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder)
