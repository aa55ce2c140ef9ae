"""`srun --mpi=list` -> the MPI plug-ins."""

from __future__ import annotations

import re

_NAME = re.compile(r"^(?:srun: )?\s*([a-z][a-z0-9_]*)\s*$")
_VERSIONS = re.compile(r"versions available: (.*)")


def mpi_plugins(text: str) -> tuple[str, ...]:
    """Return the names, those with a version last; older Slurm prints `srun: pmix` on stderr."""
    plain, versions = [], []
    for line in text.splitlines():
        if match := _VERSIONS.search(line):
            versions += [name for name in re.split(r"[,\s]+", match[1]) if name]
        elif match := _NAME.match(line):
            plain.append(match[1])
    return tuple(dict.fromkeys((*plain, *versions)))
