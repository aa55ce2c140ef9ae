"""The database of all twins with accounting; it starts with the first and ends with the last."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from hpc_train.errors import LabError
from hpc_train.lab.accounting import answers, install_database, mariadbd
from hpc_train.lab.daemons import Daemon, end, is_alive, start_daemon, wait_for
from hpc_train.lab.run_program import ask, must
from hpc_train.lab.twins.slurm_conf import TwinPaths
from hpc_train.lab.twins.state_file import RECORDS, locked, read_all

_FOLDER = "/var/tmp/hpctrain-twins-db"  # noqa: S108 - root's own folder, made anew
# It is not Slurm's, so it has neither ports nor a prefix.
_PLACE = TwinPaths(folder=_FOLDER, port=0, dbd_port=0)
_SOCKET = f"{_FOLDER}/data/socket"
# The name of a twin does not begin with a point.
_RECORD = RECORDS / ".database.json"


def start_database(database: str) -> str:
    """Start the database server unless it runs, and drop a database; return the socket.

    Raises:
        LabError: it does not start.
    """
    with locked("database"):
        running = _read()
        if running is None or not is_alive(running):
            _start()
    # It may be left from an earlier twin with the same port.
    ask((*_admin(), "--force", "drop", database))
    return _SOCKET


def stop_database() -> None:
    """Stop the database server if no twin needs it any more.

    Raises:
        LabError: it does not end.
    """
    with locked("database"):
        running = _read()
        if running is None or any(twin.place.dbd_port for twin in read_all()):
            return
        if not end(lambda: {running.pid} if is_alive(running) else set(), 5.0):
            raise LabError(f"process {running.pid}, {running.name}, cannot be ended")
        shutil.rmtree(_FOLDER, ignore_errors=True)
        _RECORD.unlink(missing_ok=True)


def _start() -> None:
    folder = Path(_FOLDER)
    if folder.exists() and (folder.is_symlink() or folder.stat().st_uid != os.geteuid()):
        raise LabError(f"{folder} belongs to another user", "remove it")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "log").mkdir(parents=True)
    folder.chmod(0o700)
    data = str(folder / "data")
    must(install_database(data), 60)
    daemon = start_daemon(_PLACE, "mariadbd", mariadbd(data, _SOCKET))
    _RECORD.write_bytes(msgspec.json.encode(daemon))
    wait_for(_FOLDER, daemon, lambda: answers(_SOCKET), 60)


def _read() -> Daemon | None:
    try:
        return msgspec.json.decode(_RECORD.read_bytes(), type=Daemon)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _admin() -> tuple[str, ...]:
    return ("mariadb-admin", f"--socket={_SOCKET}", "--user=root")
