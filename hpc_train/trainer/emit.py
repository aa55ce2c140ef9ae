"""Events on stdout that need no parser: `@hpct {"v":1,"event":"step","rank":0,...}`.

Uses only the standard library, so that this file also works without hpctrain.
"""

import errno
import io
import json
import math
import os
import sys
from typing import Any

PREFIX = "@hpct "
VERSION = 1


def emit(**fields: Any) -> None:
    """Write one event line to stdout, with `v` and this process's global `rank` added.

    The rank is `RANK` of the environment, else 0, unless `rank` is given. A value may be any JSON
    type, or a scalar with `item()` (numpy, torch). NaN and infinities, which JSON does not have,
    become null.

    Raises:
        TypeError: a value that is not a JSON type.
    """
    first = {"v": VERSION, "event": fields.get("event"), "rank": int(os.environ.get("RANK") or 0)}
    event = {**first, **fields, "v": VERSION}
    if "event" not in fields:
        del event["event"]
    write_line(PREFIX + json.dumps(_plain(event), separators=(",", ":"), allow_nan=False))


def write_line(text: str) -> None:
    """Write `text` and a newline to stdout in one write, after flushing earlier output.

    The writes of ranks that share a pipe interleave; unbuffered, `print` makes two of them. A line
    for which the disk has no space is lost: a training goes on without it.
    """
    sys.stdout.flush()
    try:
        descriptor = sys.stdout.fileno()
    except io.UnsupportedOperation:  # stdout was replaced by an object in memory
        sys.stdout.write(text + "\n")
        return
    rest = (text + "\n").encode()
    try:
        while rest:  # one call, unless the pipe accepts only part of the line
            rest = rest[os.write(descriptor, rest) :]
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, (str, int, type(None))) and hasattr(value, "item"):
        return _plain(value.item())
    return value
