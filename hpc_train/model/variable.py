"""Environment variables that may stand in a file, and so in a script that is kept and shared."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)(?:$|_)",
    re.IGNORECASE,
)


def problem_of(name: str) -> tuple[str, str] | None:
    """Return what is wrong with a variable and what to do instead; None when nothing is."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is no name of an environment variable", ""
    if _SECRET.search(name):
        return (
            f"env.{name} looks like a secret, and scripts are kept and shared",
            f"leave it out and export {name} in the shell you submit from; jobs inherit it",
        )
    return None
