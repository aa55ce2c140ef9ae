"""What an MLPerf log says of its machine -> the number of GPUs in it."""

from __future__ import annotations

import re

from hpc_train.records.parsers.json_value import scan_object

_MARK = ":::SYSJSON "
# `2xXE8545x4A100-SXM-40GB`; and DGX with eight GPUs, which those before the A100 did not all have.
_NAMED = re.compile(
    r"(?P<nodes>\d{1,5})x(?:.{1,60}?x(?P<gpus>\d{1,2})x?(?:A|B|GB|H|L|V|MI)\d{2,3}"
    r"|(?:NVIDIA )?DGX[ -]?(?P<dgx>[AHB]\d00))"
)
_DGX = 8
_MOST = 10**6


def gpus_of_system(text: str) -> int | None:
    """Return the accelerators of all nodes, by the description in a line `:::SYSJSON {..}`."""
    start = text.find(_MARK)
    found = scan_object(text, start + len(_MARK)) if start >= 0 else None
    if found is None:
        return None
    nodes, each = (
        _count(found[0].get(key)) for key in ("number_of_nodes", "accelerators_per_node")
    )
    return _sane(nodes * each) if nodes and each else None


def gpus_of_platform(name: str) -> int | None:
    """Return the GPUs of a machine whose name says their number: `8xNVIDIA DGX H100`."""
    match = _NAMED.match(name)
    if match is None:
        return None
    return _sane(int(match["nodes"]) * (int(match["gpus"]) if match["gpus"] else _DGX))


def _count(value: object) -> int | None:
    """Return a count, written as a number or as text."""
    text = str(value) if isinstance(value, str | int) else ""
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 8 else None


def _sane(gpus: int) -> int | None:
    return gpus if 0 < gpus <= _MOST else None
