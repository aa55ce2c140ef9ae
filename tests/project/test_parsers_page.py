"""The page about parsers: its code works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpc_train.records.collect import collect

DOCS = Path(__file__).resolve().parents[2] / "docs"
CODE = re.compile(r"```python\n# my_parsers/(?P<name>\w+)\.py\n(?P<text>.*?)```", re.DOTALL)


def modules() -> dict[str, str]:
    page = (DOCS / "adding-a-parser.md").read_text(encoding="utf-8")
    return {match["name"]: match["text"] for match in CODE.finditer(page)}


def test_the_parsers_of_the_guide_read_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "my_parsers"
    package.mkdir(parents=True)
    for name, text in modules().items():
        (package / f"{name}.py").write_text(text)
    metadata = tmp_path / "site" / "ours-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[hpctrain.parsers]\nour-trainer = my_parsers.trainer:TRAINER\n"
        "our-solver = my_parsers.blocks:Blocks\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    log = tmp_path / "a.log"
    log.write_text("0: it 20 ms=131.5 imgs/s=1946.8\n=== step 7 ===\ntime/s: 0.25\n")
    found = [(r.parser, r.metric, r.value, r.step, r.rank) for r in collect("r", [log])]
    assert found == [
        ("our-trainer", "step_time", pytest.approx(0.1315), 20, 0),
        ("our-trainer", "samples_per_second", 1946.8, 20, 0),
        ("our-solver", "step_time", 0.25, 7, None),
    ]
