"""Environment variables that may stand in a file, and so in a script that is kept and shared."""

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
_SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)(?:$|_)",
    re.IGNORECASE,
)


# What the script exports for the ranks.
FROM_SCRIPT = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "HPCTRAIN_RUN",
    "HPCTRAIN_LOG_DIR",
    "HPCTRAIN_FAILURE_FILE",
)
# What the script itself calls so, and what bash lets nobody set: a value would not arrive.
_OURS = frozenset(
    """
    address attempt bad_nodes begun child code devices failure folder head here host job kept link
    log mode name names node node_address node_wrapper nodes now port preflight program rank
    rank_wrapper ranks_ended rest room seen started tries try when with_local_rank word wrong
    BASHOPTS BASH_VERSINFO EUID PPID SHELLOPTS UID
    RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
    """.split()
).union(FROM_SCRIPT)


def is_reserved(name: str) -> bool:
    """Whether a job's script would not pass a variable of this name on as it was given."""
    return name in _OURS


def is_variable(name: str) -> bool:
    """Whether a shell can export a variable of this name."""
    return bool(_NAME.fullmatch(name))


def looks_secret(name: str) -> bool:
    """Whether a variable's name says that its value is nobody else's business."""
    return bool(_SECRET.search(name))


def problem_of(name: str) -> tuple[str, str] | None:
    """Return what is wrong with a variable and what to do instead; None when nothing is."""
    if not is_variable(name):
        return f"{name!r} is no name of an environment variable", ""
    if looks_secret(name):
        return (
            f"env.{name} looks like a secret, and scripts are kept and shared",
            f"export {name} in the shell you submit from, and write `secrets: {{{name}: env}}`",
        )
    return None
