"""Runs -> the site profiles that they were planned with, if those are still the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hpc_train.model.run import Run
from hpc_train.pipeline.digests import sha256_of
from hpc_train.pipeline.handover import PROFILE, PROFILE_DIGEST

_DIGITS = 12


def profile_copies(runs: Sequence[Run]) -> tuple[dict[str, Callable[[], bytes]], tuple[str, ...]]:
    """Return what to pack, by name, and a sentence for each profile that cannot be."""
    copies: dict[str, Callable[[], bytes]] = {}
    notes: list[str] = []
    for path, digest in _profiles(runs):
        name = f"profiles/{digest[:_DIGITS]}/{path.name}" if digest else f"profiles/{path.name}"
        packed = runs[0].folder.path.parent / name
        if packed.is_file():
            copies[name] = packed.read_bytes
        elif not path.is_file():
            notes.append(f"the profile {path.name} is gone")
        elif digest and sha256_of(path) != digest:
            notes.append(f"the profile {path.name} was changed after the runs were submitted")
        else:
            copies[name] = path.read_bytes
    return copies, tuple(notes)


def _profiles(runs: Sequence[Run]) -> Iterator[tuple[Path, str]]:
    said = [run.manifest.provenance for run in runs if run.manifest]
    named = {(str(s[PROFILE]), str(s.get(PROFILE_DIGEST, ""))) for s in said if s.get(PROFILE)}
    yield from ((Path(name), digest) for name, digest in sorted(named))
