"""Keeps the package's templates compiled, where Python keeps our modules compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType

from jinja2 import Environment, FileSystemBytecodeCache

FOLDER = Path(cache_from_source(__file__)).parent
# They decide what a template becomes.
MODULES = Path(__file__).parent
PATTERN = "template-%s.bin"


def remembered(
    environment: Environment, name: str, path: str, text: str, compiled: Callable[[], CodeType]
) -> CodeType:
    """Return what `compiled` made of a template the last time, if nothing has changed since."""
    cache = FileSystemBytecodeCache(str(FOLDER), PATTERN)
    bucket = cache.get_bucket(environment, name, path, text + _stamp())
    if bucket.code is None:
        bucket.code = compiled()
        # Like Python, do without where nothing may or can be written.
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                cache.set_bucket(bucket)
    return bucket.code


def _stamp() -> str:
    found = sorted((path.name, path.stat()) for path in MODULES.glob("*.py"))
    return "".join(f"{name} {status.st_mtime_ns} {status.st_size}\n" for name, status in found)
