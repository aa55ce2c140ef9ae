"""An S3 of files: buckets are folders; only whole objects."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import unquote

from hpc_train.atomicfile import write_atomic

_ERROR = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
Answer = tuple[int, bytes]


class ObjectStore:
    """The objects below a folder, as `BUCKET/KEY`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """Return status and body of a request of path style."""
        bucket, _, key = unquote(path.partition("?")[0]).strip("/").partition("/")
        if not bucket or ".." in key or not (self._folder / bucket).is_dir():
            return _error(404, "NoSuchBucket", f"The specified bucket does not exist: {bucket}")
        file = self._folder / bucket / key
        if method == "PUT":
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(file, body, flush=False)
            return 200, b""
        if method == "HEAD" and not key:
            return 200, b""
        if not key or not file.is_file():
            return _error(404, "NoSuchKey", "The specified key does not exist.")
        return 200, file.read_bytes()

    def download(self, uri: str, target: Path) -> None:
        """Copy all objects below a prefix `s3://BUCKET/PREFIX` into a folder."""
        source = self._folder / uri.removeprefix("s3://")
        target.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)

    def upload(self, folder: Path, uri: str) -> None:
        """Copy the files of a folder below a prefix."""
        if folder.is_dir():
            shutil.copytree(folder, self._folder / uri.removeprefix("s3://"), dirs_exist_ok=True)


def _error(status: int, code: str, message: str) -> Answer:
    return status, _ERROR.format(code=code, message=message).encode()
