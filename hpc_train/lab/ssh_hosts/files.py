"""The files of the hosts: keys, configurations of ssh and sshd, homes, the profile."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from hpc_train.lab.run_program import must
from hpc_train.lab.slurm_programs import search_path
from hpc_train.lab.ssh_hosts.settings import SITE, SshHost

MARK = "# Made by `hpctrain lab up --ssh`; `hpctrain lab down --ssh` removes it."

_SSHD = """\
ListenAddress {address}
HostKey {folder}/{name}/key
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
{mark}
Host {names}
  User root
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
{addresses}
Match all
Include ~/.ssh/config
"""
_PROFILE = """\
{mark}
schema: 1
name: {site}
description: {count} hosts on this one machine, made by hpctrain lab
scheduler: hosts
hosts:
{hosts}
sources:
  - what: the settings of the lab
    date: {date}
    confidence: high
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
  OMPI_ALLOW_RUN_AS_ROOT: jobs of the lab run as root, which mpirun refuses otherwise
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: mpirun requires both variables
"""


def write_files(folder: Path, hosts: tuple[SshHost, ...]) -> None:
    """Write the files of all hosts below a new folder.

    Raises:
        LabError: ssh-keygen fails.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, mode=0o755)
    (folder / "ssh_config").write_text(ssh_config(folder, hosts), encoding="utf-8")
    (folder / "log").mkdir()
    _key(folder / "key")
    shutil.copy(folder / "key.pub", folder / "authorized_keys")
    known = []
    for host in hosts:
        _write_host(folder, host)
        public = (folder / host.name / "key.pub").read_text(encoding="ascii")
        known.append(f"{host.name},{host.address} {public}")
    (folder / "known_hosts").write_text("".join(known), encoding="ascii")
    lines = (f"{host.address} {host.name}\n" for host in hosts)
    (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines), encoding="ascii")
    _write_environment(folder)


def _key(path: Path) -> None:
    must(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.parent.name, "-f", str(path)))


def _write_host(folder: Path, host: SshHost) -> None:
    own = folder / host.name
    for part in ("", "home", "tmp"):
        (own / part).mkdir()
    (own / "tmp").chmod(0o1777)
    _key(own / "key")
    new_boot(folder, host)
    config = _SSHD.format(address=host.address, folder=folder, name=host.name, path=_path())
    (own / "sshd_config").write_text(config, encoding="utf-8")
    (own / "empty").touch()
    (own / "passwd").write_text("".join(_users(own / "home")), encoding="utf-8")


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


def new_boot(folder: Path, host: SshHost) -> None:
    """Write the id of the next boot of a host."""
    (folder / host.name / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")


def _write_environment(folder: Path) -> None:
    """Let `ssh` find the hosts in a shell that reads `env`, without a change of ~/.ssh."""
    programs = folder / "bin"
    programs.mkdir()
    ssh = programs / "ssh"
    found = must(("sh", "-c", "command -v ssh")).strip()
    ssh.write_text(f'#!/bin/sh\nexec {found} -F {folder}/ssh_config "$@"\n', encoding="utf-8")
    ssh.chmod(0o755)
    (folder / "env").write_text(f'export PATH={programs}:"$PATH"\n', encoding="utf-8")


def ssh_config(folder: Path, hosts: tuple[SshHost, ...]) -> str:
    """Return the configuration of ssh for the hosts; it adds the user's own for others."""
    addresses = "\n".join(f"Host {host.name}\n  HostName {host.address}" for host in hosts)
    names = " ".join(host.name for host in hosts)
    return _SSH.format(mark=MARK, names=names, folder=folder, addresses=addresses)


def profile_text(hosts: tuple[SshHost, ...], date: str) -> str:
    """Return the profile of the hosts."""
    lines = "\n".join(f"  - {{name: {host.name}, address: {host.address}}}" for host in hosts)
    cpus = len(os.sched_getaffinity(0))
    return _PROFILE.format(
        mark=MARK, site=SITE, count=len(hosts), hosts=lines, date=date, cpus=cpus
    )
