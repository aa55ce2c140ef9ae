"""What is known of the place where a script will run; everything may be unknown."""

from __future__ import annotations

import re
from typing import Literal

from hpc_train.errors import SpecError
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Value

Version = tuple[int, ...]
Fabric = Literal["infiniband", "slingshot", "efa", "ethernet"]


class Context(Value, frozen=True, kw_only=True):
    """A site and versions; `hcas` is the number of InfiniBand devices of a node."""

    site: SiteProfile | None = None
    fabric: Fabric | None = None
    hcas: int | None = None
    nccl: Version | None = None
    openmpi: Version | None = None


def parse_version(text: str, option: str) -> Version:
    """Read `5`, `2.21` or `2.21.5-1`.

    Raises:
        SpecError: anything else.
    """
    match = re.fullmatch(r"v?(\d{1,4}(?:\.\d{1,4}){0,3})(?:[-+].*)?", text.strip())
    if match is None:
        raise SpecError(f"{option}: {text!r} is not a version", f"write it like {option} 2.21.5")
    return tuple(int(part) for part in match[1].split("."))


def shown(version: Version) -> str:
    """Write a version as people do."""
    return ".".join(map(str, version))
