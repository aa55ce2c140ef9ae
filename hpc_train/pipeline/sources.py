"""Words of the command line -> run folders, and logs of anybody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpc_train.errors import UnknownNameError
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
