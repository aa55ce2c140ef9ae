"""Figures have the width of a paper, text the width of the terminal."""

import re
import zlib
from pathlib import Path

import pytest

from tests.conftest import Hpctrain

ROWS = "".join(
    f"{name},{n},8,{n * 3000.5 / (1 + 0.01 * n) * (1 + 0.01 * r):.2f},{0.68 / n:.5f},2048,0.7{r}\n"
    for name in ("fsdp-shard", "ddp")
    for n in (1, 2, 4, 8)
    for r in (0, 1, 2)
)
HEAD = "strategy,nodes,gpus_per_node,samples_per_second,step_time,global_batch_size,accuracy\n"


@pytest.fixture(autouse=True)
def _table(hpctrain: Hpctrain) -> None:
    Path("t.csv").write_text(HEAD + ROWS)


@pytest.mark.parametrize(("width", "points"), [("3.3in", 237.6), ("84mm", 238.1)])
def test_a_figure_has_the_width_of_the_paper(hpctrain: Hpctrain, width: str, points: float) -> None:
    done = hpctrain("report", "t.csv", "-o", "f.pdf", "--width", width, "--no-title")
    assert done.returncode == 0, done.stderr
    pdf = Path("f.pdf").read_bytes()
    (box,) = re.findall(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", pdf)
    assert float(box[0]) == pytest.approx(points, abs=0.1)
    # Two panels, one below the other.
    assert float(box[1]) > float(box[0])
    # TrueType fonts, embedded: type 3 is refused by many journals.
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    streams = [zlib.decompress(part) for part in _compressed(pdf)]
    sizes = {float(size) for text in streams for size in re.findall(rb"/F1 ([0-9.]+) Tf", text)}
    assert sizes == {7.5}


def _compressed(pdf: bytes) -> list[bytes]:
    return [
        part.partition(b"\nendstream")[0]
        for part in pdf.split(b"stream\n")
        if part.startswith(b"x\x9c")
    ]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_text_fits_the_terminal(hpctrain: Hpctrain, columns: int) -> None:
    shown = hpctrain("report", "t.csv", "--notes", COLUMNS=f"{columns}").stdout.splitlines()
    assert max(map(len, shown)) <= columns
    start = shown.index("Points")
    table = shown[start + 2 : shown.index("", start + 2)]
    heads = " ".join(table[:3])
    assert {"gpus", "speedup", "efficiency"} <= set(heads.split())
    after = shown[start + 2 + len(table) :]
    left_out = " ".join(after[: after.index("", 1)])
    for name in ("samples/s", "step"):
        assert (name in heads) is (name not in left_out), name
    assert ("Columns that do not fit" in left_out) is (columns == 80)
