"""Arguments of the command line -> run folders, foreign logs, or a bundle."""

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
        UnknownNameError: an argument is neither. LogParseError: it can only be a file, which does
        not exist.
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
    """Whether an argument is a bundle."""
    return word.endswith(ENDING) and Path(word).is_file()


def bundle_of(words: Sequence[str]) -> Path | None:
    """Return the given bundle; None if there are runs or logs.

    Raises:
        StoreError: there are other arguments.
    """
    found = [Path(word) for word in words if is_bundle(word)]
    if found and len(words) > 1:
        raise StoreError(
            f"{found[0]}: a bundle is the only argument", "compare two: hpctrain compare A B"
        )
    return found[0] if found else None
