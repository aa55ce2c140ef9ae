"""Start, state and end of the small PBS: one for each user, in a folder of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from hpc_train.atomicfile import write_atomic
from hpc_train.errors import LabError
from hpc_train.lab.daemons import Daemon, boot_id, end, is_alive, start_time
from hpc_train.lab.pbs import client
from hpc_train.lab.pbs.placement import NodeSize
from hpc_train.lab.pbs.site_profile import profile_text
from hpc_train.lab.profile import check_place, install, remove
from hpc_train.model.value import Value
from hpc_train.subprocesses import clean_environment, ended, start

COMMANDS = (
    *("qsub", "qstat", "qdel", "qhold", "qrls", "qselect"),
    *("pbsnodes", "pbs_tmrsh", "pbsdsh"),
)
_FOLDERS = ("bin", "jobs", "spool", "aux", "faults")
# A socket path is limited to 107 bytes.
_LONGEST = 90
_START_S, _GRACE_S = 60.0, 15.0


class SmallPbs(Value, frozen=True, kw_only=True):
    """A running small PBS: its folder, nodes, profile and server."""

    schema: int = 1
    folder: str
    size: NodeSize
    profile: str
    profile_folders: tuple[str, ...] = ()
    server: Daemon


def default_folder() -> Path:
    """Return the folder of the user's small PBS."""
    return Path(f"/var/tmp/hpctrain-pbs-{os.getuid()}")  # noqa: S108 - checked before use


def read(folder: Path) -> SmallPbs | None:
    """Return the small PBS in a folder; None if there is none that was started."""
    try:
        content = (folder / "pbs.json").read_bytes()
        return msgspec.json.decode(content, type=SmallPbs)
    except (OSError, msgspec.DecodeError):
        return None


def up(folder: Path, size: NodeSize) -> tuple[SmallPbs, bool]:
    """Start a small PBS, or return the one that runs; whether it is new.

    Raises:
        LabError: one with other nodes runs, the folder is not ours, or the server does not start.
    """
    found = read(folder)
    if found is not None and is_alive(found.server):
        if found.size != size:
            raise LabError(
                f"the small PBS in {folder} has {found.size.nodes} nodes of {found.size.ncpus} "
                "cores",
                f"hpctrain lab down --pbs --dir {folder}",
            )
        return found, False
    if found is not None:
        down(folder)
    profile = profile_path()
    check_place(profile)
    _make(folder, size)
    server = _start_server(folder)
    text = profile_text(size, datetime.now(timezone.utc).date().isoformat())
    made = SmallPbs(
        folder=str(folder),
        size=size,
        profile=str(profile),
        profile_folders=install(profile, text),
        server=server,
    )
    write_atomic(folder / "pbs.json", msgspec.json.encode(made))
    return made, True


def down(folder: Path) -> bool:
    """End a small PBS and its jobs, and remove its files; whether there was one."""
    found = read(folder)
    if found is None:
        return False
    server = {found.server.pid}
    if not end(lambda: server if is_alive(found.server) else set(), _GRACE_S):
        raise LabError(f"the server of the small PBS, process {found.server.pid}, does not end")
    remove(Path(found.profile), found.profile_folders)
    shutil.rmtree(folder)
    return True


def profile_path() -> Path:
    """Return the path of its profile, in the folder of the user's profiles."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "hpctrain" / "lab-pbs.yaml"


def _make(folder: Path, size: NodeSize) -> None:
    if len(str(folder)) > _LONGEST or not folder.is_absolute():
        raise LabError(f"--dir {folder}: an absolute path of at most {_LONGEST} characters")
    try:
        folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        raise LabError(
            f"{folder} exists and is not that of a small PBS", "remove it, or name another --dir"
        ) from None
    except OSError as failure:
        raise LabError(f"{folder}: {failure.strerror}") from None
    for name in _FOLDERS:
        (folder / name).mkdir()
    write_atomic(folder / "nodes.json", msgspec.json.encode(size))
    for command in COMMANDS:
        words = (sys.executable, "-I", "-S", str(Path(client.__file__)), str(folder), command)
        program = folder / "bin" / command
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    line = f"export PATH={shlex.quote(f'{folder}/bin')}:$PATH\n"
    (folder / "env").write_text(line, encoding="utf-8")


def _start_server(folder: Path) -> Daemon:
    argv = [sys.executable, "-m", "hpc_train.lab.pbs.server", str(folder)]
    log = folder / "server.log"
    process = start(argv, log, clean_environment(os.environ))
    if not ended(process, _START_S) or process.returncode != 0:
        process.kill()
        process.wait()
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
        shutil.rmtree(folder)
        raise LabError("the server of the small PBS did not start", "\n".join(lines))
    pid = int((folder / "server.pid").read_text(encoding="ascii"))
    return Daemon(name="server", pid=pid, started=start_time(pid) or 0, boot=boot_id())
