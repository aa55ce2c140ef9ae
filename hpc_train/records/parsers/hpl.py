"""HPL (LINPACK): `WR11C2R4  35000  192  2  2  12.34  2.3e+03` and the check of the residual.

| column | metric | unit | scope |
|---|---|---|---|
| Gflops, of all processes | gflops | GFLOP/s | global |
| Time | solve_time | s | global |
| P times Q, once the tests have ended | world_size, the processes of the grid | 1 | global |
| `\\|\\|Ax-b\\|\\|_oo/(..)= .. PASSED` | residual, of the previous solution | 1 | global |
| the same, `FAILED` | residual, variant `.. failed` | 1 | global |

The variant begins with the problem: `N=35000 NB=192 P=2 Q=2`. Printed by one process, as
`HPL_pdtest.c` does. NVIDIA's HPL adds the rate of a GPU in brackets, which is omitted. HPC
Challenge solves on a part of its processes; it states all as `CommWorldProcs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import number

_ROW = re.compile(
    r"^\s{0,8}W[A-Z0-9]{5,9} {1,20}(?P<N>\d{1,12}) {1,20}(?P<NB>\d{1,7}) {1,20}(?P<P>\d{1,7})"
    r" {1,20}(?P<Q>\d{1,7}) {1,20}(?P<time>\d{1,12}\.\d\d) {1,24}"
    r"(?P<gflops>\d{1,3}\.\d{1,6}e[+-]\d\d)(?: \( ?\d{1,3}\.\d{1,6}e[+-]\d\d\))?$"
)
_CHECK = re.compile(
    r"^\s{0,8}\|\|Ax-b\|\|_oo ?/ ?[^=]{5,80}= {1,24}(?P<residual>\S{1,20}) [ .]{1,24}"
    r"(?P<verdict>PASSED|FAILED)$"
)
# Order of the grid, depth of the look-ahead, kind of broadcast.
_VARIANTS = tuple(
    f"W{order}{depth}{kind}".encode() for order in "RC" for depth in "01" for kind in "012345"
)


class Hpl:
    """Parser of the rows of a solution; remembers the problem for the row of the check."""

    title = "HPL (High Performance LINPACK)"
    literals = (*_VARIANTS, b"||Ax-b||_oo", b"End of Tests.", b"HPL section", b"CommWorldProcs=")
    sample = """\
WR11C2R4       35000   192     2     2              12.34             2.3164e+03
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   4.41990053e-03 ...... PASSED
End of Tests.
"""
    states: Mapping[str, Scope] = {
        "gflops": "global",
        "solve_time": "global",
        "world_size": "global",
        "residual": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._problem = ""
        self._processes = 0
        self._is_part = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield a solution, or its check."""
        row = _ROW.search(line.text)
        if row is None:
            yield from self._check(line.text)
            yield from self._end(line.text)
            return
        self._problem = problem = " ".join(
            f"{name}={int(row[name])}" for name in ("N", "NB", "P", "Q")
        )
        rate, time = number(row["gflops"]), number(row["time"])
        self._processes = int(row["P"]) * int(row["Q"])
        if rate:
            yield Hit("gflops", rate, "global", variant=problem)
        if time:
            yield Hit("solve_time", time, "global", variant=problem)

    def _end(self, text: str) -> Iterator[Hit]:
        """Yield the processes at the end of HPL's own tests, or those that HPC Challenge states."""
        self._is_part = self._is_part or "HPL section" in text
        named = re.match(r"CommWorldProcs=(\d{1,9})$", text)
        processes = int(named[1]) if named else 0
        if text == "End of Tests." and not self._is_part:
            processes = self._processes
        if processes:
            yield Hit("world_size", float(processes), "global", once=f"{processes}")

    def _check(self, text: str) -> Iterator[Hit]:
        check = _CHECK.search(text)
        residual = number(check["residual"]) if check else None
        if check is not None and residual is not None:
            failed = " failed" if check["verdict"] == "FAILED" else ""
            yield Hit("residual", residual, "global", variant=(self._problem + failed).strip())
