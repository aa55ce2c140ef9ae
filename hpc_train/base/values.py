"""Values with units, versions and the origin of each part: what files are decoded to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar

import msgspec

LONGEST_S = 10 * 365 * 86400
LARGEST_MIB = 1024**3
_SLURM = re.compile(r"(?:(\d{1,18})-)?(\d{1,18})(?::(\d{1,9}))?(?::(\d{1,9}))?")
# Of Slurm's forms, those that people read alike.
_CLOCK = re.compile(r"(?:\d{1,18}-)?\d{1,9}:[0-5]?\d(?::[0-5]?\d)?")
_WORDS = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m(?:in)?)?(?:(\d{1,9})s)?")
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT])i?B?", re.IGNORECASE)
_MEBIBYTES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}


class Duration(int):
    """A length of time in whole seconds."""

    @classmethod
    def parse(cls, raw: object) -> Duration:
        """Read `1h30m`, `90m`, `2d`, `45s`, Slurm's `01:30:00` or `1-12:00:00`.

        Two fields (`90:00`) are minutes and seconds, as sbatch reads them. A bare number is
        refused: it is minutes for sbatch's --time, seconds for its --signal.

        Raises:
            ValueError: anything else, zero, or more than ten years.
        """
        text = str(raw).strip() if isinstance(raw, str) else ""
        clock = slurm_seconds(text) if _CLOCK.fullmatch(text) else None
        seconds = clock or _word_seconds(text)
        if not 0 < seconds <= LONGEST_S:
            kind = "longer than ten years" if seconds else "not a time"
            raise ValueError(f"{raw!r} is {kind}; write 1h30m, 90m, 45s, 2d or 01:30:00")
        return cls(seconds)

    def __str__(self) -> str:
        """Write it as Slurm does: `[D-]HH:MM:SS`."""
        days, rest = divmod(int(self), 86400)
        clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
        return f"{days}-{clock}" if days else clock


class Memory(int):
    """An amount of memory in whole mebibytes, Slurm's `M`."""

    @classmethod
    def parse(cls, raw: object) -> Memory:
        """Read `480G`, `1.5T`, `4000M`, `64GiB`; powers of 1024, as Slurm counts.

        Raises:
            ValueError: no unit, not a size, less than 1M or more than 1 PiB. Slurm reads 0 as *all
                memory of the node*, so a size is never rounded down to it.
        """
        match = _MEMORY.fullmatch(raw.strip()) if isinstance(raw, str) else None
        size = int(float(match[1]) * _MEBIBYTES[match[2].upper()]) if match else 0
        if not 0 < size <= LARGEST_MIB:
            raise ValueError(f"{raw!r} is not a memory size; write 480G, 4000M or 1.5T")
        return cls(size)

    def __str__(self) -> str:
        """Write it as Slurm does, in the largest unit that keeps it whole."""
        if self and self % 1024 == 0:
            return f"{int(self) // 1024}G"
        return f"{int(self)}M"


def slurm_seconds(text: str) -> int | None:
    """Read a time as sbatch does: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S; None if it is none.

    The forms are those of `sbatch --time` (SchedMD, sbatch manual).
    """
    match = _SLURM.fullmatch(text.strip())
    if match is None:
        return None
    days, first, second, third = (int(group or 0) for group in match.groups())
    if match[1] is not None or match[4] is not None:
        return days * 86400 + first * 3600 + second * 60 + third
    return first * 60 + second


def slurm_memory(text: str) -> Memory | None:
    """Read a size as sbatch does: `4000M`, `4G`, a bare number in mebibytes; None if it is none."""
    text = text.strip()
    try:
        return Memory.parse(f"{text}M" if text.isascii() and text.isdigit() else text)
    except ValueError:
        return None


def _word_seconds(text: str) -> int:
    match = _WORDS.fullmatch(text.replace(" ", ""))
    if not match:
        return 0
    days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds


_SHORT = r"\d{1,9}(?:\.\d{1,9}){0,3}"
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,9}")
_VERSION = re.compile(rf"{_NUMBERS.pattern}(?:\.?[-+a-z][-+.A-Za-z0-9]*)?")
_BOUND = re.compile(rf"^(?P<sign>>=|<=|>|<|)\s*(?P<number>{_SHORT})")
Parts = tuple[int, ...]


class Version(str):
    """A version: numbers separated by dots, and an optional suffix."""

    @classmethod
    def parse(cls, raw: object) -> Version:
        """Read `2.21.5`, `2.9.1+cu130`, `5.0.0rc2`.

        Raises:
            ValueError: no numbers, or a bare number, which loses the zero of 2.20.
        """
        if isinstance(raw, str) and _VERSION.fullmatch(raw):
            return cls(raw)
        quotes = f'; write it in quotes: "{raw}"' if isinstance(raw, (int, float)) else ""
        raise ValueError(f"{raw!r} is not a version like '2.21.5'{quotes}")


class NodeBounds(str):
    """A range of node counts: `1`, `>1`, `>=2,<16`."""

    @classmethod
    def parse(cls, raw: object) -> NodeBounds:
        """Read a number, or bounds with commas between.

        Raises:
            ValueError: another sign than >, >=, < and <=, or no whole number behind it.
        """
        text = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw
        if isinstance(text, str) and _is_bounds(text) and "." not in text:
            return cls(text)
        examples = "1, '>1' or '>=2,<16', with the quotes"
        raise ValueError(f"{raw!r} is not a range of node counts; write {examples}")


def parts(version: str) -> Parts:
    """Return the numbers of a version: (2, 9, 1) for `2.9.1+cu130`; the rest is left out."""
    match = _NUMBERS.match(version)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def older(version: str | None, than: str) -> bool:
    """Return whether a version is known and older than another."""
    return version is not None and within(parts(version), f"<{than}")


def within(version: Parts, bounds: str) -> bool:
    """Return whether a version is inside bounds; missing components of a bound match any number."""
    return all(_holds(version, part.strip()) for part in bounds.split(","))


def _holds(version: Parts, bound: str) -> bool:
    match = _BOUND.fullmatch(bound)
    if match is None:
        raise AssertionError(bound)
    limit = parts(match["number"])
    found = (*version, *(0,) * len(limit))[: len(limit)]
    return {
        "": found == limit,
        ">": found > limit,
        ">=": found >= limit,
        "<": found < limit,
        "<=": found <= limit,
    }[match["sign"]]


def _is_bounds(text: str) -> bool:
    return all(_BOUND.fullmatch(part.strip()) for part in text.split(","))


T = TypeVar("T")
_UNITS = (Duration, Memory, Version, NodeBounds)


def doc(text: str) -> msgspec.Meta:
    """Describe a key of an input file; the schema and messages repeat the text."""
    return msgspec.Meta(description=text)


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An immutable, strictly decoded value; subclasses repeat `frozen=True, kw_only=True`."""


class Sourced(Value, Generic[T], frozen=True, kw_only=True):
    """A decoded value with the origin of each of its keys.

    `origins` maps a dotted key (`resources.nodes`) to `job.yaml:7`, `--set` or the like.
    """

    value: T
    origins: Mapping[str, str]

    def origin(self, key: str) -> str:
        """Return the origin of `key`, or `default` if it was not set."""
        return self.origins.get(key, "default")

    def near(self, key: str) -> str:
        """Return the origin of `key` or of its nearest parent: the place to correct."""
        while key and key not in self.origins:
            key = key.rpartition(".")[0]
        return self.origins.get(key, "")


def decode_unit(kind: type, raw: Any) -> Any:
    """Decode the unit types for msgspec.

    Raises:
        ValueError: the text is not of that unit; the message contains the allowed forms.
    """
    if kind in _UNITS:
        return kind.parse(raw)
    raise NotImplementedError(kind)


def encode_unit(value: Any) -> Any:
    """Encode the unit types for msgspec, in the notation of input files."""
    if isinstance(value, _UNITS):
        return str(value)
    raise NotImplementedError(type(value))


Severity = Literal["error", "warning", "info"]
# Of a failure in a log: fatal ended the job, benign did no harm.
LogSeverity = Literal["fatal", "warning", "info", "benign"]


class Finding(Value, frozen=True, kw_only=True):
    """What every check reports; subclasses add the place and what only their kind has.

    `id` names the rule, signature or section of a report. `message` states what is wrong or its
    cause, `advice` what to do. An error prevents a job from working or makes it wrong, a warning
    costs time or hides a failure, an info is for information.
    """

    id: str = ""
    severity: Severity | LogSeverity
    message: str
    advice: str = ""


class LintFinding(Finding, frozen=True, kw_only=True):
    """A finding in a job script; lines count from 1."""

    severity: Severity
    line: int


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether one of the findings is an error."""
    return any(finding.severity == "error" for finding in findings)
