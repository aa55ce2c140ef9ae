"""Which Slurm a lab or twin runs: the one on PATH, or that of a prefix such as /opt/slurm-24.11."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from hpc_train.base.errors import LabError
from hpc_train.base.processes import run

VARIABLE = "HPCTRAIN_SLURM_PREFIX"
# Daemons and network tools are in folders that the PATH of users, and of su, does not contain.
_SYSTEM = ("/usr/sbin", "/sbin")
# It becomes part of slurm.conf, which has no quoting, and of PATH.
_PREFIX = re.compile(r"(/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)+")
_VERSION = re.compile(r"(\d{2}\.\d{2})\.\S{1,40}")


class Place(Protocol):
    """A lab or twin: the folder of its slurm.conf, and the prefix of its Slurm or nothing."""

    @property
    def folder(self) -> str:
        """Return the folder."""

    @property
    def slurm_prefix(self) -> str:
        """Return the prefix."""


def chosen_prefix(environment: Mapping[str, str] = os.environ) -> str:
    """Return the prefix that the user has chosen; empty for the Slurm on PATH.

    Raises:
        LabError: it is not the path of a folder.
    """
    prefix = environment.get(VARIABLE, "").rstrip("/")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise LabError(
            f"{VARIABLE}={prefix!r}: the folder has to be absolute, of letters, digits "
            "and . _ + - only"
        )
    if prefix and not Path(prefix).is_dir():
        raise LabError(f"{VARIABLE}={prefix}: there is no such folder", f"unset {VARIABLE}")
    return prefix


def search_path(prefix: str = "") -> str:
    """Return the PATH of daemons and programs; Slurm's programs of a prefix come first."""
    inherited = os.environ.get("PATH", os.defpath)
    return os.pathsep.join([*program_folders(prefix), inherited, *_SYSTEM])


def program_folders(prefix: str) -> tuple[str, ...]:
    """Return the folders with the programs of a prefix."""
    return (f"{prefix}/bin", f"{prefix}/sbin") if prefix else ()


def missing_in(prefix: str, programs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the programs that a prefix does not have."""
    there = os.pathsep.join(program_folders(prefix))
    return tuple(program for program in programs if shutil.which(program, path=there) is None)


def slurm(place: Place, *argv: str) -> tuple[str, ...]:
    """Return the command line of a Slurm program for a lab or twin."""
    path = f"PATH={search_path(place.slurm_prefix)}"
    return ("env", f"SLURM_CONF={place.folder}/slurm.conf", path, *argv)


def version_of(prefix: str) -> str:
    """Return the version of a Slurm, such as 24.11.5.

    Raises:
        LabError: its slurmctld does not run.
    """
    # Without a slurm.conf, the other commands of Slurm do not print their version.
    done = run(("env", f"PATH={search_path(prefix)}", "slurmctld", "-V"), 30.0)
    found = _VERSION.search(done.stdout)
    if done.returncode != 0 or found is None:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise LabError(f"`slurmctld -V` failed: {said[-1] if said else done.returncode}")
    return found.group()


def plugin_line(prefix: str) -> str:
    """Return the line of slurm.conf with the plug-ins of a prefix, which may have been moved."""
    folder = Path(prefix, "lib", "slurm")
    return f"PluginDir={folder}\n" if prefix and folder.is_dir() else ""


def shell_lines(place: Place) -> str:
    """Return the shell lines that direct Slurm's commands to a lab or twin."""
    lines = [f"export SLURM_CONF={place.folder}/slurm.conf"]
    if prefix := place.slurm_prefix:
        lines += [f"export {VARIABLE}={prefix}", path_line(prefix)]
    return "".join(f"{line}\n" for line in lines)


def path_line(prefix: str) -> str:
    """Return the shell line that puts the programs of a prefix first in PATH."""
    return f'export PATH="{os.pathsep.join(program_folders(prefix))}:$PATH"'
