"""Whose lab is there: a live one is ended by `hpctrain lab down` alone, never on the way.

A lab is known by its folder and by the namespaces that it was made from. Its daemons are known by
process id, start and boot; where these cannot be seen, its munged still answers in its folder.
"""

from __future__ import annotations

import socket
from pathlib import Path

from hpc_train.lab import record
from hpc_train.lab.errors import LabError
from hpc_train.lab.processes import is_alive, members
from hpc_train.lab.record import Lab


def made_from() -> str:
    """Return the network and process namespaces of this process, which make a place for a lab."""
    return " ".join(str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("net", "pid"))


def is_live(lab: Lab) -> bool:
    """Whether anything of a lab still runs, seen from here or not."""
    return any(is_alive(daemon) for daemon in lab.daemons) or munge_answers(lab.settings.folder)


def munge_answers(folder: str) -> bool:
    """Whether somebody listens on the munge socket of a lab's folder."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(f"{folder}/munge/socket")
        except OSError:
            return False
    return True


def check_within_reach(lab: Lab) -> None:
    """Refuse to touch a live lab of which only a part can be seen.

    Raises:
        LabError: it was made from another network or process namespace.
    """
    if lab.made_from not in ("", made_from()) and is_live(lab):
        raise LabError(
            f"the lab in {lab.settings.folder} is up, in another container or network namespace",
            f"where it was made: hpctrain lab down --dir {lab.settings.folder}",
        )


def check_unclaimed(lab: Lab | None, folder: str) -> None:
    """Refuse to make a lab in a folder while another one lives on this machine.

    Raises:
        LabError: one does; it is named, and the command that ends it.
    """
    if lab is None:
        _check_no_stranger(folder)
    elif is_live(lab):
        check_within_reach(lab)
        if lab.settings.folder != folder:
            raise LabError(
                f"another lab is up on this machine, in {lab.settings.folder}",
                f"hpctrain lab down --dir {lab.settings.folder}   "
                "(one lab per machine; its jobs end with it)",
            )


def _check_no_stranger(folder: str) -> None:
    """No record can be read: it was removed, or another version of hpctrain wrote it."""
    said = f"and {record.RECORD} does not say whose it is"
    if munge_answers(folder):
        raise LabError(f"a lab is up in {folder}, {said}", "hpctrain lab down   ends it")
    alive = sorted(members(record.existing_namespaces()))
    if alive:
        names = ", ".join(f"{_name(pid)} (process {pid})" for pid in alive[:3])
        raise LabError(
            f"a lab is up on this machine, {said}: {names}", "hpctrain lab down   ends it"
        )


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "ended"
