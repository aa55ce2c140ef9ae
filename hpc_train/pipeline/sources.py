"""Words of the command line -> run folders, and logs of anybody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpc_train.errors import UnknownNameError
from hpc_train.pipeline.foreign import expanded
from hpc_train.runs.store import find


def tell_apart(words: Sequence[str], root: Path) -> tuple[list[Path], list[Path]]:
    """Return foreign logs, and folders of runs.

    Raises:
        UnknownNameError: a word names neither.
    """
    logs: list[Path] = []
    homes: list[Path] = []
    for word in words:
        try:
            homes.append(find(root, word))
        except UnknownNameError:
            found = expanded(word)
            if not found:
                raise
            logs += found
    return logs, homes
