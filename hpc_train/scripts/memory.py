"""The memory that one rendering may take: no filter or operator of a template fills the machine."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The largest script, and some copies of it on the way.
MORE = 512 * 1024 * 1024
_STATM = Path("/proc/self/statm")


@contextmanager
def limited_memory() -> Iterator[None]:
    """Let the process grow by `MORE` bytes at most while this lasts.

    Raises:
        MemoryError: in the body, when it asks for more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(_STATM.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    known = [limit for limit in (soft, hard, used + MORE) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(known), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
