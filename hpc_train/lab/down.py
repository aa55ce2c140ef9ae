"""Removes a lab, also one that is incomplete or has no record."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hpc_train.base.errors import LabError
from hpc_train.lab import state_file
from hpc_train.lab.daemons import end, is_alive, members
from hpc_train.lab.lab_status import check_within_reach
from hpc_train.lab.profile import profile_link, withdraw
from hpc_train.lab.requirements import check_root, is_lab_folder
from hpc_train.lab.run_program import ask
from hpc_train.lab.settings import DEFAULT_FOLDER, Settings

_GRACE_S = 2.0


def down(folder: str | None = None) -> str:
    """Remove a lab; return its folder; an empty text if there was none.

    Without a folder: the only lab, or what is left of one without a record.

    Raises:
        LabError: there are several, one is in another namespace, or something cannot be removed.
    """
    check_root()
    with state_file.only_one():
        labs = state_file.read_all()
        found = [lab for lab in labs if folder in (None, lab.settings.folder)]
        if len(found) > 1:
            commands = [f"hpctrain lab down --dir {lab.settings.folder}" for lab in found]
            raise LabError(f"{len(found)} labs are up", "   or   ".join(commands))
        for lab in found:
            check_within_reach(lab)
        settings = found[0].settings if found else Settings(folder=folder or DEFAULT_FOLDER)
        if not found and (state_file.read() or not leftovers(settings)):
            return ""
        clear(settings)
    return settings.folder


def leftovers(settings: Settings) -> tuple[str, ...]:
    """Return the parts of a lab that exist, whether or not there is a record of it."""
    parts = [f"namespace {name}" for name in state_file.existing_namespaces(settings.number)]
    if state_file.has_host_link(settings):
        parts.append(f"interface {settings.host_link}")
    record, profile = state_file.record(settings), profile_link(settings)
    parts += [str(path) for path in (record, profile) if os.path.lexists(path)]
    if is_lab_folder(Path(settings.folder)):
        parts.append(settings.folder)
    return tuple(parts)


def clear(settings: Settings) -> None:
    """End a lab's processes, then remove its files and networks.

    Raises:
        LabError: something cannot be removed.
    """
    _end_processes(settings.number)
    if state_file.has_host_link(settings):
        ask(("ip", "link", "del", settings.host_link))
    for name in state_file.existing_namespaces(settings.number):
        ask(("ip", "netns", "del", name))
    withdraw(settings)
    if is_lab_folder(Path(settings.folder)):
        shutil.rmtree(settings.folder)
    state_file.record(settings).unlink(missing_ok=True)
    if left := leftovers(settings):
        raise LabError(f"could not be removed: {', '.join(left)}")


def _end_processes(number: int) -> None:
    names, lab = state_file.existing_namespaces(number), state_file.read(number)
    daemons = lab.daemons if lab else ()

    def alive() -> set[int]:
        return {daemon.pid for daemon in daemons if is_alive(daemon)} | members(names)

    if not end(alive, _GRACE_S):
        raise LabError(f"these processes of the lab cannot be ended: {sorted(alive())}")
