"""Provenance of a run: versions, machine, git state."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpc_train.shell import run
from hpc_train.version import VERSION

_PACKAGES = ("torch", "numpy", "submitit")


def provenance(folder: Path, argv: Sequence[str]) -> dict[str, Any]:
    """Describe this machine, the installed packages and the git state of `folder`."""
    return {
        "hpctrain": VERSION,
        "python": platform.python_version(),
        "host": platform.node(),
        "kernel": platform.release(),
        "cpu": _cpu_model(),
        "cwd": str(folder.absolute()),
        "argv": list(argv),
        "packages": _versions(),
        "git": _git(folder),
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git(folder: Path) -> dict[str, Any] | None:
    commit = run(["git", "rev-parse", "HEAD"], 10, folder)
    if commit.returncode != 0:
        return None
    # The results of the first submission are untracked files, and would mark the second as changed.
    changes = run(["git", "status", "--porcelain", "--untracked-files=no"], 30, folder)
    return {"commit": commit.stdout.strip(), "dirty": bool(changes.stdout.strip())}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
