"""Signature: a failure and the lines that identify it; Sighting: a line that matched one."""

from __future__ import annotations

import logging
import re
from functools import cached_property
from typing import Annotated, Literal

from msgspec import Meta, field

from hpc_train.model.finding import LogSeverity
from hpc_train.model.value import Value
from hpc_train.timed_regex import TimedPattern

PACKAGED = "hpctrain"
"""`Signature.origin` of those that come with the package."""

SignatureGroup = Literal[
    "slurm",
    "lsf",
    "mpi",
    "torchrun",
    "c10d",
    "nccl",
    "cuda",
    "gpu_hardware",
    "software",
    "filesystem",
    "container",
    "python",
    "site",
]
SignatureRole = Literal["cause", "consequence"]
SignatureKind = Literal["failure", "echo", "exit", "kill", "stop", "general"]
MemoryShortage = Literal["full", "fragmentation", "other_processes"]
Composed = Literal["traceback", "torchrun_report", "nccl_last_error", "nccl_tests"]
ShortText = Annotated[str, Meta(min_length=1, max_length=400)]
# Before and after the literal [characters]: window in which a site's pattern is searched.
_BEFORE, _AFTER = 256, 768
_log = logging.getLogger(__name__)


class Explanation(Value, frozen=True, kw_only=True):
    """What happened, why, and what to do; `{name}` is replaced by the value in the line."""

    title: ShortText
    cause: ShortText
    advice: ShortText


class SignatureEntry(Explanation, frozen=True, kw_only=True):
    """A signature as it is written in a file, below its id."""

    group: Annotated[SignatureGroup, Meta(description="Section of the catalogue.")]
    severity: Annotated[
        LogSeverity, Meta(description="fatal ends a job; benign looks bad and does no harm.")
    ]
    role: Annotated[
        SignatureRole,
        Meta(description="consequence: it follows another failure, which is reported elsewhere."),
    ] = "cause"
    kind: Annotated[
        SignatureKind,
        Meta(
            description="echo: what a rank says when another has failed; exit: how a process "
            "ended; kill: it ended without a word; stop: somebody ended the job; general: any "
            "error, if nothing more precise is known of the line."
        ),
    ] = "failure"
    late: Annotated[
        bool, Meta(description="The line comes when a step ends, long after the failure.")
    ] = False
    literals: Annotated[
        tuple[Annotated[str, Meta(min_length=4, max_length=200)], ...],
        Meta(description="Every line of it holds one of them; default: the text in the pattern."),
    ] = ()
    pattern: Annotated[
        Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)],
        Meta(description="Python regex that is searched in the line, or its parts in a list."),
    ]
    example: Annotated[str, Meta(min_length=1, description="What a log says, a line or more.")]
    sources: Annotated[tuple[str, ...], Meta(description="Pages that document it.")] = ()
    process: Annotated[
        str, Meta(description="What the title calls a process whose exit code the line states.")
    ] = ""
    by_memory: Annotated[
        dict[MemoryShortage, Explanation],
        Meta(description="The explanation instead, for each kind of shortage of GPU memory."),
    ] = field(default_factory=dict)
    found_by: Annotated[
        Composed | None, Meta(description="The reader of several lines that makes it.")
    ] = None


class Signature(SignatureEntry, frozen=True, kw_only=True, dict=True):
    """One kind of failure, and the line that identifies it.

    `literals`: every line of it holds at least one of them. `pattern` is searched in `Line.text`;
    its named groups fill the `{name}` of `title`, where `{of_rank}` is ` of rank 3` or nothing (see
    `explain`). `role`: whether the line is a cause of failure or a consequence. `example` is
    text of a log, one line or more. `origin` is `hpctrain`, or `file:line` of a site's file.
    """

    id: str
    origin: str
    pattern: str

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern; most of them are never needed for a log, so that each is compiled late."""
        return re.compile(self.pattern)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the match; in a long line, a site's pattern is searched near a literal.

        A site's pattern that takes too long is named, and finds nothing from then on.
        """
        if self.origin == PACKAGED:
            return self.compiled.search(text)
        if len(text) > _BEFORE + _AFTER:
            places = [at for literal in self.literals if (at := text.find(literal)) >= 0]
            start = max(0, min(places, default=0) - _BEFORE)
            text = text[start : start + _BEFORE + _AFTER]
        known = self._timed.is_slow
        match = self._timed.search(text)
        if self._timed.is_slow and not known:
            _log.warning("%s: the pattern of %s takes too long; left out", self.origin, self.id)
        return match

    @cached_property
    def _timed(self) -> TimedPattern:
        return TimedPattern(self.pattern)


class Sighting(Value, frozen=True, kw_only=True):
    """A signature seen in a log.

    `text` is the line, or a summary of the lines of a box or traceback, at most 500 characters.
    `time` is ISO 8601 text without a zone, if the line has a time. `groups` are the named groups of
    the pattern that matched; the groups of several lines are merged.
    """

    signature: str
    source: str
    line: int
    text: str
    rank: int | None = None
    node: str | None = None
    time: str | None = None
    groups: tuple[tuple[str, str], ...] = ()
