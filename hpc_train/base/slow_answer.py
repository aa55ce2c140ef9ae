"""A notice while a command waits for the answer of another program or service."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NOTICE_S = 10.0


@contextmanager
def notice_if_slow(who: str, limit: str = "") -> Iterator[None]:
    """Say after 10 s, once, that `who` has not answered; `limit` says for how long it may take."""
    text = f"{who} has not answered for {NOTICE_S:.0f} s{limit or '; it is still waited for'}"
    notice = threading.Timer(NOTICE_S, logging.getLogger(__name__).warning, (text,))
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
