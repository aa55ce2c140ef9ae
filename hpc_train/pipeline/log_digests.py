"""Log files -> names, sizes and SHA-256, as text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from hpc_train.json_files import to_json
from hpc_train.model.run import Run
from hpc_train.records.find_logs import log_files, readable
from hpc_train.regularfile import is_folder, sha256_of
from hpc_train.runs.log_result_cache import read_cache, write_cache

# Stored in the run folder, in case the logs are deleted.
_FILE = "logs.json"
_MOST = 1 << 30
_decode = msgspec.json.Decoder(str).decode


class Digests:
    """Digests of files, up to a GiB in total: after that, sizes only."""

    def __init__(self, most: int = _MOST) -> None:
        self._left = most

    def of_run(self, run: Run) -> str:
        """Return a line for all logs of a run or, if they are deleted, the stored line.

        The line of a finished run is stored in logs.json. The digest is that of the output of
        `sha256sum` for all logs, called in the run's folder and sorted by name.

        Raises:
            LogParseError: the stored file is damaged.
        """
        folder = run.folder
        if not is_folder(folder.logs):
            return read_cache(folder.path / _FILE, _decode) or ""
        files = log_files([folder.logs])
        size = sum(path.stat().st_size for path in files)
        lines = [f"{self._of(p)}  {p.relative_to(folder.path).as_posix()}\n" for p in files]
        complete = not any(line.startswith("-") for line in lines)
        digest = hashlib.sha256("".join(map(readable, lines)).encode()).hexdigest()
        count = f"{len(files)} file{'s' * (len(files) != 1)}"
        line = f"{folder.run_id}: {count}, {size} B{_shown(digest if complete else '')}"
        if run.state.finished:
            write_cache(folder.path / _FILE, to_json(line))
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
