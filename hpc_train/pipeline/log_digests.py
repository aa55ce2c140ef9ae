"""Log files -> names, sizes and SHA-256, as text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from hpc_train.files import to_json
from hpc_train.model.run import Run
from hpc_train.records.find_logs import log_files, readable
from hpc_train.regularfile import is_folder, sha256_of
from hpc_train.runs.cache_file import keep, read_kept

# In the run folder, in case the logs are deleted; in a bundle, instead of them.
KEPT = "logs.json"
_MOST = 1 << 30
_decode = msgspec.json.Decoder(str).decode


class Digests:
    """Digests of files, up to a GiB in total: after that, sizes only."""

    def __init__(self, most: int = _MOST) -> None:
        self._left = most

    def of_run(self, run: Run) -> str:
        """Return a line for all logs of a run or, if they are deleted, the stored line.

        That of a finished run is kept in logs.json.
        Its digest is that of the lines which `sha256sum` prints for the logs, from the run's
        folder, by name.

        Raises:
            LogParseError: the stored file is damaged.
        """
        folder = run.folder
        if not is_folder(folder.logs):
            return read_kept(folder.path / KEPT, _decode) or ""
        files = log_files([folder.logs])
        size = sum(path.stat().st_size for path in files)
        said = [f"{self._of(p)}  {p.relative_to(folder.path).as_posix()}\n" for p in files]
        whole = not any(line.startswith("-") for line in said)
        digest = hashlib.sha256("".join(map(readable, said)).encode()).hexdigest()
        line = f"{folder.run_id}: {len(files)} files, {size} B{_shown(digest if whole else '')}"
        if run.state.finished:
            keep(folder.path / KEPT, to_json(line))
        return line

    def of_files(self, files: Iterable[tuple[str, Path]]) -> Iterator[str]:
        """Yield a line for each file: its name, size, and digest."""
        for name, path in files:
            if path.is_file():
                size, digest = path.stat().st_size, self._of(path).removeprefix("-")
                yield f"{readable(name)}: {size} B{_shown(digest)}"

    def _of(self, path: Path) -> str:
        """Return a file's digest; `-` if there are too many bytes, or they cannot be read."""
        try:
            self._left -= path.stat().st_size
            return "-" if self._left < 0 else sha256_of(path)
        except OSError:
            return "-"


def _shown(digest: str) -> str:
    return f", sha256 {digest}" if digest else ", not digested"
