"""Logs of every format -> what is read in them; formats.yaml has both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.parsing.log_parser import Hit
from tests.records.parse_text import parse, values

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FORMATS = yaml.load((Path(__file__).parent / "formats.yaml").read_bytes(), LOADER)  # noqa: S506
CASES = [(name, case) for name, cases in FORMATS.items() for case in cases]
UNUSUAL = ("unit", "steps", "message_size", "variant", "once", "node")
USUAL = Hit("", 0.0, "global")


def said(number: int, hit: Hit, rank: int | None) -> str:
    """Return a hit in the words of formats.yaml."""
    words = [str(number), hit.metric, f"{hit.value:.10g}", hit.scope]
    named = [("step", hit.step), ("rank", rank)]
    words += [f"{name}={value}" for name, value in named if value is not None]
    changed = [name for name in UNUSUAL if getattr(hit, name) != getattr(USUAL, name)]
    return " ".join(words + [f"{name}={getattr(hit, name)}" for name in changed])


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{n}-{case['title']}") for n, case in CASES]
)
def test_log_states(case: dict[str, Any]) -> None:
    logs = [case["log"]] if isinstance(case["log"], str) else case["log"]
    for log in logs:
        census = ParseStats()
        found = parse(log.encode(), *case.get("parsers", ()), rank=case.get("rank"), census=census)
        assert [said(*one) for one in found] == case.get("states", []), log
        assert sum(census.damaged.values()) == case.get("damaged", 0), log


def test_table_ends_after_fifty_other_lines_but_nccl_may_talk() -> None:
    head = b"#  size  count  type  redop  root  time  algbw  busbw  #wrong\n"
    row = b"  1048576  262144  float  sum  -1  100.0  10.49  18.35  0\n"
    talk = b"node01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P\n"
    assert values(head + talk * 500 + row, "busbw") == [18.35]
    assert values(head + b"other\n" * 50 + row, "busbw") == [18.35]
    assert values(head + b"other\n" * 51 + row, "busbw") == []
