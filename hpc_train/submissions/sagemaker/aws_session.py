"""The session of boto3: credentials and region of this shell, read once."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from hpc_train.errors import nearest
from hpc_train.extras import need

_WHAT = "scheduler sagemaker"


def check_boto3() -> None:
    """Check that boto3 is installed.

    Raises:
        MissingExtraError: with the command that installs it.
    """
    need(_WHAT, "sagemaker")


def region_of_shell() -> str | None:
    """Return the region of the environment, else that of the configuration."""
    # boto3 reads AWS_DEFAULT_REGION only; AWS's other tools read both.
    found = os.environ.get("AWS_REGION") or session().region_name
    return str(found) if found else None


def unknown_region(region: str) -> str:
    """Return the words for a region that boto3 does not know, with the nearest; else empty."""
    # Those of China and of the US government are other partitions.
    partitions = session().get_available_partitions()
    known = [
        name
        for partition in partitions
        for name in session().get_available_regions("sagemaker", partition)
    ]
    return "" if region in known else f"which boto3 does not know{nearest(region, known)}"


def session() -> Any:
    """Return one session for all clients: each would log in, or request a code, again."""
    shell = {name: text for name, text in os.environ.items() if name.startswith("AWS_")}
    return _session_of(tuple(sorted({**shell, "HOME": os.environ.get("HOME", "")}.items())))


def forget_session() -> None:
    """Read the credentials again at the next call."""
    _session_of.cache_clear()


@lru_cache(maxsize=1)
def _session_of(shell: tuple[tuple[str, str], ...]) -> Any:
    import boto3

    return boto3.session.Session()
