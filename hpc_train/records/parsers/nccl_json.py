"""Files that nccl-tests writes with `-J`, and the JSON of rccl-tests (`-Z json`).

| key | metric | unit | scope |
|---|---|---|---|
| `devices`, `nthreads`, `ngpus` | world_size, stated at `results` | 1 | global |
| `time` or `cpu_time`, `alg_bw`, `bus_bw` of a result | latency, algbw, busbw | us, GB/s | global |
| `out_of_bounds` | wrong_values | 1 | global |
| `average_bus_bandwidth` | busbw, variant `average` | GB/s | global |

In a result, `size` is the message_size, and the variant is `out_of_place` or `in_place`. Keys are
read in the order of the file, so the file may be truncated, or reformatted to many lines. A value
that is not a number is the string "nan", and is omitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, TableState
from hpc_train.records.parsing.printed_numbers import countable, number

_METRICS = {
    "time": "latency",
    "cpu_time": "latency",
    "alg_bw": "algbw",
    "bus_bw": "busbw",
    "algBw": "algbw",
    "busBw": "busbw",
}
_OPENS = frozenset({"out_of_place", "in_place", "out_of_bounds", "average_bus_bandwidth"})
_KEY = re.compile(
    r'"(nccl_version|size|time|cpu_time|alg_?[bB]w|bus_?[bB]w|inPlace|rank|group|nthreads|ngpus|count'
    r"|bandwidth|results|experiment_name|end_time|[a-z_]{1,24}_per_iter"
    r'|out_of_place|in_place|out_of_bounds|average_bus_bandwidth)"\s{0,8}:\s{0,8}'
    r'(?:(-?\d{1,20}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?)(?=[\s,}\]]|$)|["{\[n])'
)
# Same as `str.isalpha`, except for characters such as one half.
_LETTER = re.compile(r"[^\W\d_]")


class NcclJson:
    """Parser of one file; remembers the current key."""

    title = "JSON files of nccl-tests and rccl-tests"
    literals = (b'"nccl_version"', b'"alg_bw"', b'"algBw"', b'"average_bus_bandwidth"')
    sample = (
        '{"version":2,"nccl_version":22809,"config":{"nthreads":1,"ngpus":1,"devices":['
        '{"rank":0,"group":0,"pid":41},{"rank":1,"group":0,"pid":42}]},"results":[{"size":1024,'
        '"count":256,"type":"float","redop":"sum","root":"    -1","out_of_place":{"time":8.5,'
        '"alg_bw":0.12,"bus_bw":0.12,"nwrong":0}}],"out_of_bounds":{"count":0,"okay":"true"},'
        '"average_bus_bandwidth":{"bandwidth":0.12,"okay":"unchecked"}}'
    )
    states: Mapping[str, Scope] = dict.fromkeys(
        ("world_size", "latency", "algbw", "busbw", "wrong_values"), "global"
    )

    def __init__(self) -> None:
        self._table = TableState()
        self._size: int | None = None
        self._within = ""
        self._per_process = {"nthreads": 1, "ngpus": 1}
        self._processes: list[int | None] = []
        self._groups: list[int | None] = []

    @property
    def wants_next(self) -> bool:
        """Whether the file continues: only if it was formatted to many lines."""
        return self._table.wanted

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values of the keys on a line."""
        ended, found = False, False
        for match in _KEY.finditer(line.text):
            # A version in quotes belongs to a description of a system.
            found |= match[1] != "nccl_version" or match[2] is not None
            ended = match[1] == "end_time"
            yield from self._key(match[1], None if match[2] is None else number(match[2]))
        if found:
            self._table.begin()
        # The times of all iterations are lines with one number each.
        elif _LETTER.search(line.text):
            self._table.other()
        if ended:
            self._table.end()

    def _key(self, key: str, value: float | None) -> Iterator[Hit]:
        if key == "size":
            self._size = countable(value)
        elif key == "experiment_name":
            self._size, self._within = None, ""
        elif key in _OPENS or key.endswith("_per_iter"):
            self._within = key
        elif key == "results":
            yield from self._world()
        elif value is not None:
            self._note(key, value)
            yield from self._value(key, value)

    def _note(self, key: str, value: float) -> None:
        if key == "inPlace":
            self._within = "in_place" if value else "out_of_place"
        elif key == "rank":
            self._processes.append(countable(value))
        elif key == "group":
            self._groups.append(countable(value))
        elif key in self._per_process:
            self._per_process[key] = countable(value) or 0

    def _value(self, key: str, value: float) -> Iterator[Hit]:
        if key in _METRICS and self._size is not None and self._within.endswith("_place"):
            yield Hit(_METRICS[key], value, "global", message_size=self._size, variant=self._within)
        elif key == "count" and self._within == "out_of_bounds":
            yield Hit("wrong_values", value, "global")
        elif key == "bandwidth" and self._within == "average_bus_bandwidth":
            yield Hit("busbw", value, "global", variant="average")

    def _world(self) -> Iterator[Hit]:
        # For each process, the file contains the first rank only.
        ranks = self._per_process["nthreads"] * self._per_process["ngpus"]
        processes = len(set(self._processes))
        if self._groups:
            processes = min(processes, self._groups.count(self._groups[0]))
        if processes and ranks:
            yield Hit("world_size", float(processes * ranks), "global")
        self._processes, self._groups = [], []
