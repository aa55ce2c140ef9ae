"""Lines of `all_reduce_bench.py` of *Machine Learning Engineering* (S. Bekman), older versions.

| line | metric | unit | scope |
|---|---|---|---|
| ` algo throughput: x bps, y Gbps` | algbw, variant `both_ways` | GB/s | per rank |
| ` busbw: y  Gbps` (1e9 bits per second) | busbw | GB/s | per rank |
| `The average bandwidth of .. a 4.0GB payload (.., 16 ranks):` | world_size | 1 | global |
| ` algbw: x GBps (y Gbps)`, ` busbw: x GBps (y Gbps)` | algbw, busbw | GB/s | global |

`both_ways` counts sent and received data: it is twice the algbw of other benchmarks. The payload,
or `data size: 4.0 GB` (1e9 B), is the message_size of the values after it. Ranks that share a pipe
mix their lines, so the rank of a line is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import countable, number, scaled

_NUMBER = r"(\d{1,15}(?:\.\d{1,10})?)"
_SIZE = re.compile(rf"data size: {_NUMBER} GB$")
_HEAD = re.compile(
    rf"average bandwidth of all_reduce with a {_NUMBER}GB payload \(\d{{1,9}} trials, "
    r"(\d{1,7}) ranks\)"
)
_BOTH_WAYS = re.compile(
    rf"algo throughput: (?:\d{{1,20}}(?:\.\d{{1,10}})? (?:bps|Bytes/s), )?{_NUMBER} (Gbps|GB/s)$"
)
_BUS = re.compile(rf"\bbusbw: {_NUMBER} {{1,2}}(Gbps|GB/s)$")
_MEAN = re.compile(rf"\b(algbw|busbw): {_NUMBER} GBps \(")
_GBS = {"Gbps": 0.125, "GB/s": 1.0}


class AllReduceBench:
    """Parser that remembers the size of the buffer."""

    title = "all_reduce_bench.py of *Machine Learning Engineering*"
    literals = (
        b"data size: ",
        b"algo throughput: ",
        b"busbw: ",
        b"algbw: ",
        b"average bandwidth of all_reduce",
    )
    sample = """\
0 data size: 4.0 GB
 algo throughput: 80000000000.0000 bps, 80.0000 Gbps
 busbw: 60.0000  Gbps
"""
    states: Mapping[str, Scope] = {"algbw": "per_rank", "busbw": "per_rank"}
    wants_next = False

    def __init__(self) -> None:
        self._size: int | None = None

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values of a line."""
        text = line.text
        if found := _SIZE.search(text):
            self._size = countable(float(found[1]) * 1e9)
        elif found := _HEAD.search(text):
            self._size = countable(float(found[1]) * 1e9)
            yield Hit("world_size", float(found[2]), "global")
        elif found := _BOTH_WAYS.search(text):
            yield from self._hit("algbw", found[1], "both_ways", _GBS[found[2]])
        elif found := _BUS.search(text):
            yield from self._hit("busbw", found[1], "", _GBS[found[2]])
        elif found := _MEAN.search(text):
            yield from self._hit(found[1], found[2], "", 1.0, "global")

    def _hit(
        self, metric: str, text: str, variant: str, scale: float, scope: Scope = "per_rank"
    ) -> Iterator[Hit]:
        value = number(text)
        if value is not None:
            yield Hit(metric, scaled(value, scale), scope, message_size=self._size, variant=variant)
