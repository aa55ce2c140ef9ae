"""Cache of the package's compiled templates, beside Python's bytecode cache."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType

from jinja2 import Environment, FileSystemBytecodeCache

FOLDER = Path(cache_from_source(__file__)).parent
# These determine the compiled form: Jinja applies filters to constants as it compiles.
_DETERMINING = (
    "template_blocks.py", "quote_filters.py", "template_loader.py", "jinja_environment.py",
)  # fmt: skip
MODULES = tuple(Path(__file__).with_name(name) for name in _DETERMINING)
PATTERN = "template-%s.bin"


def cached_code(
    environment: Environment, name: str, path: str, text: str, compiled: Callable[[], CodeType]
) -> CodeType:
    """Return the cached result of `compiled` for a template, if nothing has changed."""
    cache = FileSystemBytecodeCache(str(FOLDER), PATTERN)
    bucket = cache.get_bucket(environment, name, path, text + _stamp())
    if bucket.code is None:
        bucket.code = compiled()
        # Like Python, work without a cache if it cannot be written.
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                cache.set_bucket(bucket)
    return bucket.code


@cache
def _stamp() -> str:
    found = ((path.name, path.stat()) for path in MODULES)
    return "".join(f"{name} {status.st_mtime_ns} {status.st_size}\n" for name, status in found)
