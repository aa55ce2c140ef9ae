"""Words of the command line -> run folders, logs of anybody, or a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpc_train.errors import StoreError, UnknownNameError
from hpc_train.pipeline.bundles.form import ENDING
from hpc_train.pipeline.foreign import expanded, no_such_file
from hpc_train.runs.store import find


def tell_apart(words: Sequence[str], root: Path) -> tuple[list[Path], list[Path]]:
    """Return foreign logs, and folders of runs.

    Raises:
        UnknownNameError: a word names neither.
        LogParseError: it can only mean a file, and there is none.
    """
    logs: list[Path] = []
    homes: list[Path] = []
    for word in words:
        try:
            homes.append(find(root, word))
        except UnknownNameError as unknown:
            found = expanded(word)
            if not found:
                raise no_such_file(word) or unknown from None
            logs += found
    return logs, homes


def is_bundle(word: str) -> bool:
    """Whether a word names a bundle."""
    return word.endswith(ENDING) and Path(word).is_file()


def bundle_of(words: Sequence[str]) -> Path | None:
    """Return the bundle that is named; None where runs or logs are.

    Raises:
        StoreError: other words stand beside it.
    """
    found = [Path(word) for word in words if is_bundle(word)]
    if found and len(words) > 1:
        raise StoreError(f"{found[0]}: a bundle stands alone", "compare two: hpctrain compare A B")
    return found[0] if found else None
