"""Hand-written lines: what the generic parser reads, and what is too uncertain."""

import re
from pathlib import Path

import pytest
import yaml

from hpc_train.base.metrics import UNITS
from hpc_train.logs.formats.generic import Generic
from hpc_train.logs.line import Line
from tests.logs.parse_text import Brief, brief

HERE = Path(__file__)
PAGE = HERE.resolve().parents[2] / "docs" / "my-report-is-empty.md"
ROW = re.compile(r"^\| `(.+)` \| (.+) \|$", re.MULTILINE)
LINES = yaml.safe_load(HERE.with_name("hand_written_lines.yaml").read_text("utf-8"))
READ, NOTHING = LINES["read"], LINES["nothing"]


def shown(one: Brief) -> str:
    metric, value, scope, step, rank = one
    unit = UNITS[metric].removeprefix("1")
    words = [metric, f"{value:.10g}", f"1{unit}" if unit.startswith("/") else unit]
    words += [f"({scope})"] if scope != "per_rank" else []
    places = [f", step {step}"] if step is not None else []
    places += [f", rank {rank}"] if rank is not None else []
    return " ".join(filter(None, words)) + "".join(places)


def test_the_page_says_what_is_read() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8").partition("## Lines that are read")[2])
    known = READ | NOTHING
    assert len(rows) >= 10
    assert [
        one for one, cell in rows if known[one.replace(r"\|", "|")] != cell.replace("`", "")
    ] == []


@pytest.mark.parametrize("text", READ)
def test_a_line_that_leaves_no_doubt(text: str) -> None:
    assert "; ".join(map(shown, brief(text.encode(), "generic"))) == READ[text]


@pytest.mark.parametrize("text", NOTHING)
def test_a_line_whose_values_are_not_certain(text: str) -> None:
    assert Generic().read(Line(text.encode())) == []


@pytest.mark.parametrize(
    "text",
    [
        "epoch 1, loss: 0.5 (loss: 0.4)", "epoch 1 loss 0.5 train loss 0.4",
        "100 images/s, 90 images/s, loss scale 1",
    ],
)  # fmt: skip
def test_two_values_of_one_metric_are_none(text: str) -> None:
    assert Generic().read(Line(text.encode())) == []


def test_a_rank_of_the_prefix_is_that_of_the_line() -> None:
    assert brief(b"[rank3]: [GPU1] Epoch 2 loss 0.5", "generic") == [
        ("loss", 0.5, "per_rank", 2, 3)
    ]
