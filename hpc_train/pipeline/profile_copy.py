"""Runs -> the site profiles that they were planned with, if those are still the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hpc_train.model.run import Run
from hpc_train.pipeline.digests import sha256_of
from hpc_train.pipeline.handover import PROFILE, PROFILE_DIGEST

_FOLDER = "profiles"


def profile_copies(runs: Sequence[Run]) -> tuple[dict[str, Callable[[], bytes]], tuple[str, ...]]:
    """Return what to pack, by name, and a sentence for each profile that is not there any more."""
    copies: dict[str, Callable[[], bytes]] = {}
    notes: list[str] = []
    for path, digest in _profiles(runs):
        if not path.is_file():
            packed = path.parent.name == _FOLDER
            notes += [] if packed else [f"the profile {path.name} is gone: not packed"]
        elif digest and sha256_of(path) != digest:
            notes.append(f"the profile {path.name} is another one than at submission: not packed")
        else:
            copies[f"{_FOLDER}/{digest[:12]}-{path.name}".replace("/-", "/")] = partial(
                path.read_bytes
            )
    return copies, tuple(notes)


def _profiles(runs: Sequence[Run]) -> list[tuple[Path, str]]:
    said = [run.manifest.provenance for run in runs if run.manifest]
    named = {(str(s[PROFILE]), str(s.get(PROFILE_DIGEST, ""))) for s in said if s.get(PROFILE)}
    return [(Path(name), digest) for name, digest in sorted(named)]
