"""The folder of a job -> an archive, the same bytes for the same files."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from hpc_train.errors import StoreError
from hpc_train.model.value import Value

# Neither sources nor needed in the image.
_LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".ipynb_checkpoints"}
)
MOST_BYTES = 100 << 20


class CodeArchive(Value, frozen=True, kw_only=True):
    """A gzipped tar file; `digest` is the sha256 of its bytes, in hex, shortened."""

    content: bytes
    digest: str


def pack(folder: Path, results: Path) -> CodeArchive:
    """Archive a folder, without results, versions and environments; links are followed.

    Raises:
        StoreError: a file cannot be read, or the files have more than 100 MiB.
    """
    output = io.BytesIO()
    total = 0
    with (
        gzip.GzipFile(fileobj=output, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path in _files(folder, results.resolve()):
            total += _add(archive, path, path.relative_to(folder))
            if total > MOST_BYTES:
                raise StoreError(
                    f"{folder}: the code has more than {MOST_BYTES >> 20} MiB, the last file is "
                    f"{path.relative_to(folder)}",
                    "submit from the folder of the program, and name data in sagemaker.inputs",
                )
    content = output.getvalue()
    return CodeArchive(content=content, digest=hashlib.sha256(content).hexdigest()[:16])


def _files(folder: Path, results: Path) -> Iterator[Path]:
    for place, names, files in os.walk(folder):
        here = Path(place)
        names[:] = sorted(
            name
            for name in names
            if name not in _LEFT_OUT
            and not (here / name / "pyvenv.cfg").exists()
            and (here / name).resolve() != results
        )
        yield from (path for name in sorted(files) if (path := here / name).is_file())


def _add(archive: tarfile.TarFile, path: Path, name: Path) -> int:
    """Add a file without owner and time; return its size [bytes]."""
    try:
        content = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as failure:
        raise StoreError(f"{path}: cannot be read: {failure.strerror}", "chmod u+r") from None
    entry = tarfile.TarInfo(name.as_posix())
    entry.size, entry.mode = len(content), 0o755 if mode & 0o100 else 0o644
    archive.addfile(entry, io.BytesIO(content))
    return len(content)
