"""A comparison whose sides ran on other nodes says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hpc_train.model.log_selection import Search
from hpc_train.pipeline.compare import CompareOptions, compare

RATES = (100.0, 101.0, 99.0, 100.5, 99.5)


def stored(path: Path, nodes: Sequence[str]) -> str:
    """Write a report of runs on two nodes each, with the names of these."""
    runs = [
        {
            "run_id": f"r{i}", "series": "all", "state": "COMPLETED", "nodes": 2, "repetition": i,
            "gpus_per_node": 1, "tasks_per_node": 1, "ranks": 2, "gpus": 2, "conditions": {},
            "samples_per_second": RATES[i], "node_list": text, "flags": [],
        }
        for i, text in enumerate(nodes)
    ]  # fmt: skip
    path.write_text(json.dumps({"schema": 1, "rows": [], "runs": runs}))
    return str(path)


def caveats(a: str, b: str) -> list[str]:
    found = compare(a, b, Search(root=Path("runs")), CompareOptions()).report
    return [line for line in found.summary if "share no node" in line]


def test_sides_that_share_no_node_are_a_caveat(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.json", ["n1,n2"] * 5)
    (said,) = caveats(a, stored(tmp_path / "b.json", ["n3,n4"] * 5))
    assert said.startswith("Caveats: A and B share no node, and their repetitions are on the same")
    assert said.endswith("between A and B: 2 nodes, 2 GPUs: A on n1, n2, B on n3, n4.") or (
        said.endswith("between A and B: 2 GPUs: A on n1, n2, B on n3, n4.")
    )
    # A node of both sides, other nodes for each run of both, and nodes that were not recorded.
    assert caveats(a, stored(tmp_path / "c.json", ["n2,n3"] * 5)) == []
    several = stored(tmp_path / "d.json", [f"m{i},m{i + 1}" for i in range(5)])
    assert caveats(several, stored(tmp_path / "e.json", [f"k{i},k{i + 1}" for i in range(5)])) == []
    assert caveats(a, stored(tmp_path / "f.json", [""] * 5)) == []
