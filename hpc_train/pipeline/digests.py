"""Log files -> name, size and SHA-256 of each, as text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from hpc_train.model.run import Run
from hpc_train.pipeline.keeping import read_kept
from hpc_train.records.log_names import log_files, readable

# Beside a bundle's runs, in place of their logs.
KEPT = "logs.json"
_MOST = 1 << 30
_decode = msgspec.json.Decoder(tuple[str, ...]).decode


class Digests:
    """Digests of files, up to a GiB of them in all: after that, sizes only."""

    def __init__(self, most: int = _MOST) -> None:
        self._left = most

    def of_run(self, run: Run) -> tuple[str, ...]:
        """Return a line for each log of a run or, where they are gone, what was kept of them.

        Raises:
            LogParseError: what was kept is damaged.
        """
        folder = run.folder
        if not folder.logs.is_dir():
            return read_kept(folder.path / KEPT, _decode) or ()
        files = log_files([folder.logs])
        names = ((f"{folder.run_id}/{p.relative_to(folder.path).as_posix()}", p) for p in files)
        return tuple(self.of_files(names))

    def of_files(self, files: Iterable[tuple[str, Path]]) -> Iterator[str]:
        """Yield a line for each file: its name, size, and digest."""
        for name, path in files:
            if path.is_file():
                yield f"{readable(name)}  {path.stat().st_size} B  {self._digest(path)}"

    def _digest(self, path: Path) -> str:
        self._left -= path.stat().st_size
        if self._left < 0:
            return "not digested: too large"
        try:
            return f"sha256 {sha256_of(path)}"
        except OSError as failure:
            return f"cannot be read: {failure.strerror or failure}"


def sha256_of(path: Path) -> str:
    """Return the digest of a file's bytes as hex digits.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
