"""Runs -> the site profiles that they were planned with, if unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hpc_train.model.run import PROFILE, PROFILE_DIGEST, Run
from hpc_train.pipeline.digests import sha256_of

_DIGITS = 12
_NO_DIGIT = re.compile("[^0-9a-f]")


def profile_copies(
    runs: Sequence[Run], *, packed: bool = False
) -> tuple[dict[str, Callable[[], bytes]], tuple[str, ...]]:
    """Return the profiles to pack, by name, and a note for each that cannot be packed.

    For runs from a bundle, only profiles in that bundle are packed: a path in a foreign bundle must
    not cause a local file to be packed.
    """
    copies: dict[str, Callable[[], bytes]] = {}
    notes: list[str] = []
    for path, digest in _profiles(runs):
        digits = _NO_DIGIT.sub("", digest)[:_DIGITS]
        name = f"profiles/{digits}/{path.name}" if digits else f"profiles/{path.name}"
        beside = runs[0].folder.path.parent / name
        if beside.is_file():
            copies[name] = beside.read_bytes
        elif packed or not path.is_file():
            notes.append(f"the profile {path.name} does not exist")
        elif digest and sha256_of(path) != digest:
            notes.append(f"the profile {path.name} was changed after the runs were submitted")
        else:
            copies[name] = path.read_bytes
    return copies, tuple(notes)


def _profiles(runs: Sequence[Run]) -> Iterator[tuple[Path, str]]:
    said = [run.manifest.provenance for run in runs if run.manifest]
    named = {(str(s[PROFILE]), str(s.get(PROFILE_DIGEST, ""))) for s in said if s.get(PROFILE)}
    yield from ((Path(name), digest) for name, digest in sorted(named))
