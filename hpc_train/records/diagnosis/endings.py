"""Lines by which a program says that its work is done, or that it ended without it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from hpc_train.model.value import Value
from hpc_train.records.line import Line

# `work`: the work is done, but what the program still has to do (save, evaluate) may fail;
# `bench`: a measurement is done, perhaps one before the work.
Kind = Literal["success", "work", "bench", "restart", "failure"]


class Ending(Value, frozen=True, kw_only=True):
    """A line that tells how the work ended; `restart` takes back what was said before it."""

    kind: Kind
    line: int
    text: str


LONGEST = 500
_Pattern = tuple[Kind, bytes, re.Pattern[str]]

_PATTERNS: tuple[_Pattern, ...] = (
    ("success", b"run_stop", re.compile(r'"status": ?"success"|run_stop: \{"success": true')),
    ("failure", b"run_stop", re.compile(r'"status": ?"aborted"|run_stop: \{"success": false')),
    ("restart", b"run_start", re.compile(r":::MLP?.{0,400}\brun_start\b")),
    ("success", b"Training completed", re.compile(r"(?:^|- |\] )Training completed\b")),
    ("success", b"[after training is done]", re.compile(r"\[after training is done\]")),
    ("success", b"done training in", re.compile(r"\bdone training in \d")),
    *(
        ("success", literal, re.compile(r'@hpct \{[^{}]{0,400}"event": ?"end"'))
        for literal in (b'"event":"end"', b'"event": "end"')
    ),
    ("success", b"exits successfully", re.compile(r"\bProcess \d+ exits successfully")),
    ("work", b"'train_runtime':", re.compile(r"^\{.{0,400}'train_runtime':")),
    (
        "work",
        b"`Trainer.fit` stopped: ",
        re.compile(r"`Trainer\.fit` stopped: `max_\w+=.{1,40} rea"),
    ),
    ("bench", b"Avg bus bandwidth", re.compile(r"^#\s*Avg bus bandwidth\s*:\s*[\d.]+")),
    ("bench", b"Collective test concluded", re.compile(r"^#\s*Collective test concluded")),
    (
        "failure",
        b"Out of bounds values",
        re.compile(r"^#\s*Out of bounds values\s*:\s*[1-9]\d* FAIL"),
    ),
    ("work", b"Total img/sec on", re.compile(r"^Total img/sec on \d+ ")),
    ("work", b"Training time ", re.compile(r"^Training time \d+(?: days?, \d+)?:\d\d:\d\d")),
    ("work", b"Run stats:", re.compile(r"\bRun stats:$")),
    ("work", b"All done!", re.compile(r"\bAll done!$")),
    ("work", b"*** Best metric: ", re.compile(r"\*\*\* Best metric: ")),
)
_STATUS = re.compile(r'"(?:status|success)": ?(?:"\w{1,40}"|true|false)')


class EndingReader:
    """Finds the endings in one log."""

    literals = tuple(dict.fromkeys(literal for _, literal, _ in _PATTERNS))
    wants_next = False

    def read(self, line: Line) -> Iterator[Ending]:
        """Yield what the line says of the end."""
        # A script that is traced only quotes it.
        if not line.raw.lstrip().startswith(b"+"):
            yield from _said(line)


def _said(line: Line) -> Iterator[Ending]:
    for kind, literal, pattern in _PATTERNS:
        if literal in line.raw and pattern.search(line.text):
            text = _stop(line.text) if literal == b"run_stop" else line.text
            yield Ending(kind=kind, line=line.number, text=text[:LONGEST])
            return


def _stop(text: str) -> str:
    """Return what MLPerf says of the end, without the rest of its line."""
    found = _STATUS.search(text)
    return f"run_stop, {found[0]}" if found else text
