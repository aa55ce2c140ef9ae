"""munged: the daemon that authenticates Slurm's programs; each folder has its own key."""

from __future__ import annotations

import secrets
from pathlib import Path


def write_key(folder: Path) -> None:
    """Write a new key that only its owner can read."""
    key = folder / "munge" / "key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))


def munged_command(folder: str) -> tuple[str, ...]:
    """Return the command line of a munged with all its files in a folder."""
    munge = f"{folder}/munge"
    files = ("key-file", "key"), ("pid-file", "pid"), ("seed-file", "seed"), ("log-file", "log")
    options = [f"--{option}={munge}/{name}" for option, name in files]
    return ("munged", "--foreground", f"--socket={munge}/socket", *options)
