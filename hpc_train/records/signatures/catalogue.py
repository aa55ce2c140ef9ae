"""Catalogue: all signatures in the order in which they are tried, those of a site first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from hpc_train.data_folders import data_file, site_folders
from hpc_train.errors import SignatureError
from hpc_train.model.value import Value
from hpc_train.records.signatures.base import PACKAGED, Signature
from hpc_train.records.signatures.signature_file import read_own, read_signatures
from hpc_train.typed_values import load_data

FOLDER = "signatures"


class _Files(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    files: tuple[str, ...]


class Catalogue:
    """Signatures in the order in which they are tried on a line, with their literals.

    `owners` maps a literal to the positions in `single` of the signatures that use it.
    """

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self.signatures = tuple(signatures)
        self.by_id = {one.id: one for one in self.signatures}
        # The others are made of several lines.
        self.single = tuple(one for one in self.signatures if one.found_by is None)
        self.literals = frozenset(
            literal.encode() for one in self.signatures for literal in one.literals
        )
        self.owners: dict[bytes, list[int]] = defaultdict(list)
        for number, one in enumerate(self.single):
            for literal in one.literals:
                self.owners[literal.encode()].append(number)


def catalogue() -> Catalogue:
    """Return all signatures: `signatures/*.yaml` of each site folder, and the package's.

    Raises:
        SignatureError: a site's file is wrong, with file:line.
    """
    return _of(site_folders())


# The folders of a process stay the same; tests have several.
@lru_cache(maxsize=4)
def _of(folders: tuple[Path, ...]) -> Catalogue:
    own = {one.id: one for one in _own(folders)}
    return Catalogue((*own.values(), *(one for one in packaged() if one.id not in own)))


@cache
def packaged() -> tuple[Signature, ...]:
    """Return the signatures that come with the package."""
    names = load_data("signature_files.yaml", _Files).files
    paths = [data_file(FOLDER, f"{name}.yaml") for name in names]
    # The package's tests have checked them.
    return tuple(one for path in paths for one in read_signatures(path, PACKAGED)[1])


def _own(folders: Iterable[Path]) -> Iterator[Signature]:
    """Yield those of a site or user; of one id, that of the first folder."""
    composed = {one.id for one in packaged() if one.found_by is not None}
    known: dict[str, Signature] = {}
    for folder in dict.fromkeys(folders):
        here: dict[str, Signature] = {}
        for path in sorted((folder / FOLDER).glob("*.yaml")):
            for one in read_own(path):
                _check_id(one, composed, here.get(one.id))
                here[one.id] = one
        known = {**here, **known}
        yield from (one for name, one in here.items() if known[name] is one)


def _check_id(one: Signature, composed: set[str], other: Signature | None) -> None:
    place = f"{one.origin}: signatures.{one.id}"
    if one.id in composed:
        raise SignatureError(
            f"{place}: hpctrain makes this one of several lines; choose another id",
            "hpctrain diagnose --list names the ids",
        )
    if other is not None:
        raise SignatureError(f"{place}: the id stands at {other.origin}, too; choose another")
