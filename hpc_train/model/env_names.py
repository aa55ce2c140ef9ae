"""Environment variables that are allowed in files and scripts."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

Variable = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)", description="Name of an environment variable."),
]
# In a job's `secrets`: from the shell that submits.
ENV = "env"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What the script exports for the ranks.
FROM_SCRIPT = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "HPCTRAIN_RUN",
    "HPCTRAIN_LOG_DIR",
    "HPCTRAIN_FAILURE_FILE",
)
# Variables of the script itself, and read-only variables of bash: a value would be lost.
_OURS = frozenset(
    """
    address attempt bad_nodes begun child code devices failure folder head here host job kept link
    log mode name names node node_address node_wrapper nodes now port preflight program rank
    rank_wrapper ranks_ended rest room seen started tries try when with_local_rank word wrong
    BASHOPTS BASH_VERSINFO EUID PPID SHELLOPTS UID
    RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
    """.split()
).union(FROM_SCRIPT)

_NEEDED = {
    "PATH": "without it, the script finds no program",
    "HOME": "without it, ~ is not a folder, and programs do not find their settings and caches",
}


def is_reserved(name: str) -> bool:
    """Whether a job's script would not pass on a variable of this name unchanged."""
    return name in _OURS


def is_variable(name: str) -> bool:
    """Whether a shell can export a variable of this name."""
    return bool(_NAME.fullmatch(name))


def why_not_empty(name: str) -> str:
    """Return the reason why a variable must not be empty, or an empty text."""
    return _NEEDED.get(name, "")
