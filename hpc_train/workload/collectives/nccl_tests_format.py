"""The lines of nccl-tests 2.17: head, devices, rows, foot (its `src/util.cu`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hpc_train.model.collectives import DTYPES, Collective, Message, algorithm_bandwidth

_WIDE, _NARROW = 7, 6
_PLACEMENTS = "out-of-place                       in-place"
_NAMES = ("time", "algbw", "busbw", "#wrong")
_UNITS = ("(us)", "(GB/s)", "(GB/s)", "")
_LEAD_WIDTHS, _HALF_WIDTHS = (10, 12, 8, 6, 6), (7, 6, 6, 6)


class Placement(NamedTuple):
    """Seconds of one call, and wrong elements on all ranks; None if they were not counted."""

    seconds: float
    wrong: int | None


class Bandwidth(NamedTuple):
    """Algorithm and bus bandwidth [GB/s = 1e9 B/s]."""

    algorithm: float
    bus: float


class RankDevice(NamedTuple):
    """The process and device of a rank; `bus` is the PCI address, `[0x00]` for a CPU."""

    rank: int
    process: int
    host: str
    device: int
    bus: str
    name: str

    def line(self) -> str:
        """Return the line of this rank in the list of devices."""
        process = f"Group  0 Pid {self.process:6d} on {self.host:>10}"
        return f"#  Rank {self.rank:2d} {process} device {self.device:2d} [{self.bus}] {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclTestsTable:
    """The table of a collective; `root` is printed for broadcast only."""

    collective: Collective
    dtype: str
    root: int
    ranks: int

    def bandwidth(self, message: Message, seconds: float) -> Bandwidth:
        """Return the bandwidths as doc/PERFORMANCE.md of nccl-tests defines them."""
        algorithm = algorithm_bandwidth(self.bytes_of(message), seconds)
        return Bandwidth(algorithm, algorithm * self.collective.bus_factor(self.ranks))

    def bytes_of(self, message: Message) -> int:
        """Return the size of a message, that of the larger of its two arrays."""
        return message.elements * DTYPES[self.dtype]

    def row(self, message: Message, placements: Sequence[Placement]) -> str:
        """Return the row of a message, measured out of place and in place."""
        operation = "sum" if self.collective.reduces else "none"
        root = self.root if self.collective.rooted else -1
        lead = f"{self.bytes_of(message):12d}  {message.printed:12d}  {self.dtype:>8}"
        halves = (self._half(message, placement) for placement in placements)
        return f"{lead}  {operation:>6}  {root:6d}{''.join(halves)}"

    def _half(self, message: Message, placement: Placement) -> str:
        speed = self.bandwidth(message, placement.seconds)
        time = fitted(placement.seconds * 1e6, _WIDE)
        speeds = f"{fitted(speed.algorithm, _NARROW)}  {fitted(speed.bus, _NARROW)}"
        wrong = "N/A" if placement.wrong is None else f"{placement.wrong:g}"
        return f"  {time}  {speeds}  {wrong:>6}"

    def foot(self, wrong_halves: int, average: float) -> Iterator[str]:
        """Yield the lines below the rows: halves with wrong elements, the mean busbw of all."""
        yield f"# Out of bounds values : {wrong_halves} {'FAILED' if wrong_halves else 'OK'}"
        yield f"# Avg bus bandwidth    : {average:g} "
        yield "#"
        yield f"# Collective test concluded: {self.collective.test}"


def head() -> Iterator[str]:
    """Yield the lines above the first row."""
    lead = f"# {'':>10}  {'':>12}  {'':>8}  {'':>6}  {'':>6}"
    yield "#"
    yield f"{lead}           {_PLACEMENTS}          "
    yield _columns(("size", "count", "type", "redop", "root"), _NAMES)
    yield _columns(("(B)", "(elements)", "", "", ""), _UNITS)


def _columns(lead: Sequence[str], names: Sequence[str]) -> str:
    first = "  ".join(f"{one:>{width}}" for one, width in zip(lead, _LEAD_WIDTHS, strict=True))
    half = "  ".join(f"{one:>{width}}" for one, width in zip(names, _HALF_WIDTHS, strict=True))
    return f"# {first}  {half}  {half} "


def fitted(value: float, width: int) -> str:
    """Return a number in `width` characters as `getFloatStr` of nccl-tests: 2 to 0 decimals."""
    digits = len(str(int(value))) if value >= 1 else 0
    for decimals, spare in ((2, 2), (1, 1), (0, -1)):
        if digits < width - spare:
            return f"{value:{width}.{decimals}f}"
    return f"{value:{width}.1e}" if width >= _WIDE else f"{value:{width}.0e}"
