"""Line: a line of a log without prefixes, colours and invalid characters."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from hpc_train.records.line_prefixes import Prefix, peel
from hpc_train.records.multi_search import Occurrence

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")

# The beginning of a line with a prefix, except for a date.
_PREFIXED = frozenset(bytes([byte]) for byte in b"[0123456789 \t\x1b\0")


class Line(msgspec.Struct, gc=False):
    """One line of a log, or a window of it where it is very long.

    `raw` holds its bytes, `number` counts from 1. `text` is what the program wrote: without rank
    prefixes, terminal escapes, trailing blanks and NUL; bytes that are not UTF-8 become U+FFFD.
    """

    raw: bytes
    number: int = 1
    file_rank: int | None = None
    _prefix: Prefix | None = None
    _found: Sequence[Occurrence] = ()
    _literals: Sequence[bytes] = ()

    @property
    def held(self) -> set[bytes]:
        """The searched literals that the line contains."""
        return {self._literals[number] for _, number in self._found}

    @property
    def text(self) -> str:
        """The line without the additions of launchers and terminals."""
        return (self._prefix or self.prefix).rest

    @property
    def rank(self) -> int | None:
        """The global rank that wrote the line: from its prefix, else from the file name."""
        rank = (self._prefix or self.prefix).rank
        return self.file_rank if rank is None else rank

    @property
    def node(self) -> str | None:
        """The host in the prefix."""
        if self._prefix is not None:
            return self._prefix.host
        if self.raw[:1] not in _PREFIXED and self.raw[3:4] != b" ":
            return None
        return self.prefix.host

    def peel(self, site: re.Pattern[str]) -> None:
        """Remove the prefixes; `site` matches a prefix that only this site uses."""
        self._prefix = peel(clean(self.raw), site)

    @property
    def prefix(self) -> Prefix:
        """The prefix before the text: rank, local rank, host."""
        if self._prefix is None:
            self._prefix = peel(clean(self.raw))
        return self._prefix


def clean(raw: bytes) -> str:
    """Return a line as text that a terminal can print."""
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    return text.rstrip()
