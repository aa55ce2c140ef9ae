"""Removes a lab, also one that is incomplete or has no record."""

from __future__ import annotations

import shutil
from pathlib import Path

from hpc_train.errors import LabError
from hpc_train.lab import state_file
from hpc_train.lab.daemons import end, is_alive, members
from hpc_train.lab.lab_status import check_within_reach
from hpc_train.lab.network import HOST_LINK
from hpc_train.lab.profile import LINK, withdraw
from hpc_train.lab.requirements import check_root, is_lab_folder
from hpc_train.lab.run_program import ask
from hpc_train.lab.settings import DEFAULT_FOLDER

_GRACE_S = 2.0


def down(folder: str | None = None) -> str:
    """Remove the lab; return its folder; an empty text if there was none.

    Raises:
        LabError: it is in another folder or namespace, or something cannot be removed.
    """
    check_root()
    with state_file.only_one():
        found = state_file.read()
        there = found.settings.folder if found else folder or DEFAULT_FOLDER
        if found is None and not leftovers(there):
            return ""
        if found is not None:
            if folder not in (None, there):
                raise LabError(
                    f"the lab of this machine is in {there}, not in {folder}",
                    f"hpctrain lab down --dir {there}",
                )
            check_within_reach(found)
        clear(there)
    return there


def leftovers(folder: str = DEFAULT_FOLDER) -> tuple[str, ...]:
    """Return the parts of a lab that exist, whether or not there is a record of it."""
    parts = [f"namespace {name}" for name in state_file.existing_namespaces()]
    if state_file.has_host_link():
        parts.append(f"interface {HOST_LINK}")
    if state_file.RECORD.exists():
        parts.append(str(state_file.RECORD))
    if is_lab_folder(Path(folder)):
        parts.append(folder)
    if LINK.is_symlink():
        parts.append(str(LINK))
    return tuple(parts)


def clear(folder: str) -> None:
    """End the lab's processes, then remove its files and networks.

    `folder` is the lab's folder if there is no record.

    Raises:
        LabError: something cannot be removed.
    """
    lab = state_file.read()
    _end_processes(lab)
    if state_file.has_host_link():
        ask(("ip", "link", "del", HOST_LINK))
    for name in state_file.existing_namespaces():
        ask(("ip", "netns", "del", name))
    withdraw()
    there = lab.settings.folder if lab else folder
    if is_lab_folder(Path(there)):
        shutil.rmtree(there)
    state_file.RECORD.unlink(missing_ok=True)
    if left := leftovers(there):
        raise LabError(f"could not be removed: {', '.join(left)}")


def _end_processes(lab: state_file.Lab | None) -> None:
    names = state_file.existing_namespaces()
    daemons = lab.daemons if lab else ()

    def alive() -> set[int]:
        return {daemon.pid for daemon in daemons if is_alive(daemon)} | members(names)

    if not end(alive, _GRACE_S):
        raise LabError(f"these processes of the lab cannot be ended: {sorted(alive())}")
