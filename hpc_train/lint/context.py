"""The site, the fabric and the library versions with which a script will run; all are optional."""

from __future__ import annotations

import re
from typing import Literal

from hpc_train.errors import SpecError
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Value
from hpc_train.model.versions import Version, older

Fabric = Literal["infiniband", "slingshot", "efa", "ethernet"]


class LintContext(Value, frozen=True, kw_only=True):
    """A site and versions; `hcas` is the number of InfiniBand devices of a node."""

    site: SiteProfile | None = None
    fabric: Fabric | None = None
    hcas: int | None = None
    nccl: Version | None = None
    openmpi: Version | None = None


class Product(Value, frozen=True, kw_only=True):
    """A product with its valid versions: `first` inclusive, `end` exclusive; `example` is one."""

    name: str
    first: str
    end: str
    example: str


# The upper bounds leave room for later releases; NCCL needs a minor version.
NCCL = Product(name="NCCL", first="2.1", end="4", example="2.21.5")
OPEN_MPI = Product(name="Open MPI", first="1.0", end="10", example="5.0.8")


def parse_version(text: str, place: str, product: Product) -> Version:
    """Read `2.21`, `5.0.8rc1`, or the version of a package, such as `2.21.5-1`.

    Raises:
        SpecError: the text is no version, or is outside the product's range.
    """
    match = re.fullmatch(r"v?(\d{1,4}(?:\.\d{1,4}){0,3})(?:[-+a-z].*)?", text.strip())
    if match is None or older(match[1], product.first) or not older(match[1], product.end):
        raise SpecError(
            f"{place}: {text[:40]!r} is not a version of {product.name}",
            f"write it like {product.example}",
        )
    return Version.parse(match[1])
