"""Starts and stops the twin of a site."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import msgspec

from hpc_train.errors import LabError
from hpc_train.lab.daemons import (
    Daemon,
    end,
    is_alive,
    munged_command,
    start_daemon,
    wait_for,
    write_key,
)
from hpc_train.lab.requirements import check_root, check_twin_programs
from hpc_train.lab.run_program import ask, must
from hpc_train.lab.slurm_programs import chosen_prefix, shell_lines, slurm
from hpc_train.lab.twins import state_file
from hpc_train.lab.twins.accounts import account_settings, has_accounting, users_of_machine
from hpc_train.lab.twins.assumptions import assumptions
from hpc_train.lab.twins.job_submit_plugin import job_submit
from hpc_train.lab.twins.loopback_address import add_route, free_ports, remove_route
from hpc_train.lab.twins.mariadb_server import start_database, stop_database
from hpc_train.lab.twins.slurm_conf import MARK, TwinPaths, slurm_conf, slurmdbd_conf
from hpc_train.lab.twins.state_file import Twin
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Value
from hpc_train.registry import find_batch_system

FOLDERS = "/var/tmp/hpctrain-twins"  # noqa: S108 - root's own folder, checked before use
# A socket path is limited to 107 bytes.
_LONGEST_NAME = 60
_WITHIN_S = 20.0
_GRACE_S = 1.0


class Started(Value, frozen=True, kw_only=True):
    """A running twin, and whether this call started it."""

    twin: Twin
    made: bool


def start(profile: SiteProfile) -> Started:
    """Start the twin of a site, unless it is running with the same configuration.

    Raises:
        LabError: it cannot be started; nothing is left behind.
    """
    prefix = chosen_prefix()
    _check(profile, prefix)
    with state_file.locked(profile.name):
        found = state_file.read(profile.name)
        if found and state_file.is_running(found) and _same(profile, found.place, prefix):
            return Started(twin=found, made=False)
        if found:
            _clear(found)
        return Started(twin=_make(profile, prefix), made=True)


def stop(name: str) -> bool:
    """Stop the twin of a site; return whether there was one.

    Raises:
        LabError: something cannot be removed.
    """
    check_root()
    with state_file.locked(name):
        found = state_file.read(name)
        if found:
            _clear(found)
    return found is not None


def configuration(profile: SiteProfile, place: TwinPaths) -> dict[str, str]:
    """Return the files of a twin by name; pure text."""
    files = {
        # It is written first: it marks the folder as that of a twin.
        "slurm.conf": slurm_conf(profile, place),
        "job_submit.lua": job_submit(profile),
        "env": shell_lines(place),
    }
    if place.dbd_port:
        commands = account_settings(profile, users_of_machine())
        lines = (" ".join(words) for words in commands)
        files["slurmdbd.conf"] = slurmdbd_conf(place)
        files["accounts"] = "".join(f"{line}\n" for line in lines)
    return files


def _check(profile: SiteProfile, prefix: str) -> None:
    check_root()
    if not find_batch_system(profile.scheduler).steps:
        raise LabError(f"{profile.name} has no Slurm; only a Slurm site can have a twin")
    if len(profile.name) > _LONGEST_NAME:
        raise LabError(f"{profile.name}: the name of a twin has at most {_LONGEST_NAME} characters")
    check_twin_programs(prefix, accounting=has_accounting(profile))


def _same(profile: SiteProfile, place: TwinPaths, prefix: str) -> bool:
    if place.slurm_prefix != prefix:
        return False
    files = configuration(profile, place)
    paths = {name: Path(place.folder, name) for name in files}
    return all(path.is_file() and path.read_text() == files[n] for n, path in paths.items())


def _make(profile: SiteProfile, prefix: str) -> Twin:
    ports = free_ports(profile.name)
    place = TwinPaths(
        folder=f"{FOLDERS}/{profile.name}",
        port=next(ports),
        dbd_port=next(ports) if has_accounting(profile) else 0,
        slurm_prefix=prefix,
    )
    with ExitStack() as undo:
        twin = Twin(name=profile.name, place=place, assumptions=assumptions(profile))
        _write_files(profile, place)
        state_file.write(twin)
        undo.callback(lambda: _clear(state_file.read(profile.name) or twin))
        _start_daemons(profile, place)
        twin = msgspec.structs.replace(state_file.read(profile.name) or twin, complete=True)
        state_file.write(twin)
        undo.pop_all()
    return twin


def _write_files(profile: SiteProfile, place: TwinPaths) -> None:
    folder = Path(place.folder)
    _remove(folder)
    try:
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        for name, text in configuration(profile, place).items():
            path = folder / name
            path.touch(mode=0o600 if name == "slurmdbd.conf" else 0o644)
            path.write_text(text, encoding="utf-8")
        for name in ("state", "log", "munge"):
            (folder / name).mkdir(mode=0o755)
        write_key(folder)
    except OSError as failure:
        raise LabError(f"{failure.filename}: {failure.strerror}") from None


def _remove(folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    conf = folder / "slurm.conf"
    ours = not folder.is_symlink() and folder.stat().st_uid == os.geteuid() and conf.is_file()
    if not ours or not conf.read_text(encoding="utf-8", errors="replace").startswith(MARK):
        raise LabError(f"{folder} exists and is not the folder of a twin", "remove it")
    shutil.rmtree(folder)


def _start_daemons(profile: SiteProfile, place: TwinPaths) -> None:
    """Start every daemon; each is recorded as soon as it runs."""
    folder = place.folder

    def run(*argv: str, **extra: str) -> Daemon:
        daemon = start_daemon(place, argv[0], argv, extra)
        twin = state_file.read(profile.name)
        if twin is not None:
            state_file.write(msgspec.structs.replace(twin, daemons=(*twin.daemons, daemon)))
        return daemon

    def answers(*argv: str, word: str = "") -> bool:
        done = ask(slurm(place, *argv))
        return done.returncode == 0 and word in done.stdout

    add_route()
    munged = run(*munged_command(folder))
    wait_for(folder, munged, Path(folder, "munge/socket").exists, 10)
    if place.dbd_port:
        # slurmdbd has no setting for the socket of its database; the client library reads this one.
        dbd = run("slurmdbd", "-D", MYSQL_UNIX_PORT=start_database(place.database))
        wait_for(folder, dbd, lambda: answers("sacctmgr", "-n", "list", "cluster"), _WITHIN_S)
    # slurmctld adds its cluster and its GPUs to the database, and the accounts need both.
    controller = run("slurmctld", "-D", "-i", "-f", f"{folder}/slurm.conf")
    wait_for(folder, controller, lambda: answers("scontrol", "ping", word="is UP"), _WITHIN_S)
    if place.dbd_port:
        for words in account_settings(profile, users_of_machine()):
            must(slurm(place, "sacctmgr", "-i", *words))


def _clear(twin: Twin) -> None:
    def alive() -> set[int]:
        return {daemon.pid for daemon in twin.daemons if is_alive(daemon)}

    if not end(alive, _GRACE_S):
        raise LabError(f"these processes of the twin cannot be ended: {sorted(alive())}")
    _remove(Path(twin.place.folder))
    state_file.forget(twin)
    if twin.place.dbd_port:
        stop_database()
    if not state_file.read_all():
        remove_route()
