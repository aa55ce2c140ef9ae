"""Durations and memory sizes, in notations of users and of Slurm."""

from __future__ import annotations

import re

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
