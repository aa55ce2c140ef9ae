"""Files and tables of Hugging Face's Trainer, and what it says of its machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.record import Record
from hpc_train.records.collect import collect
from hpc_train.records.line import Line
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.parsers.hf_trainer import HfTrainer
from hpc_train.records.parsing.log_parser import Unreadable
from hpc_train.records.parsing.printed_numbers import seconds
from tests.records.parse_text import brief, parse, values

LOGS = Path(__file__).parents[1] / "logs"


def records(*names: str) -> list[Record]:
    return list(collect("run", [LOGS / name for name in names]))


def of(found: list[Record], metric: str) -> list[tuple[float, int | None, int, str]]:
    return [(r.value, r.step, r.steps, r.variant) for r in found if r.metric == metric]


def test_state_file() -> None:
    found = records("hf_state/trainer_state.json")
    assert {record.parser for record in found} == {"hf_state"}
    assert of(found, "loss") == [(2.5, 10, 10, ""), (2.25, 20, 10, ""), (2, 40, 20, "")]
    assert of(found, "grad_norm") == [(1.5, 10, 10, ""), (1, 40, 20, "")]
    assert of(found, "accuracy") == [(0.5, 20, 1, "")]
    assert of(found, "time_to_train") == [(80, None, 1, "")]


def test_results_file_repeats_the_state_file() -> None:
    found = records("hf_state/all_results.json", "hf_state/trainer_state.json")
    assert of(found, "time_to_train") == [(80, None, 1, "")]
    assert of(found, "samples_per_second") == [(32, None, 1, "")]


def test_state_file_on_one_line_and_without_an_end() -> None:
    text = b'{"log_history": [{"loss": 2.0, "epoch": 1, "step": 5}, {"loss": 1.0, "epo\n"x": 1\n'
    assert brief(text, "hf_state") == [("loss", 2, "global", 5, None)]


def test_state_file_ends() -> None:
    text = b'"log_history": [\n{"loss": 2.0, "epoch": 1}\n],\n"x": {"loss": 1.0, "epoch": 2}\n'
    assert values(text, "loss", "hf_state") == [2]
    endless, census = b'"log_history": [\n' + b'"x": 1,\n' * 10_000, ParseStats()
    assert parse(endless, "hf_state", census=census) == []
    assert sum(census.damaged.values()) == 1


def test_unreadable_is_no_hit() -> None:
    assert list(HfTrainer().read(Line(b"{'loss': 2.5, 'ep"))) == [Unreadable()]


@pytest.mark.parametrize(
    ("text", "value"),
    [("0:15:19.02", 919.02), ("2 days, 1:00:01", 176_401), ("12.5", 12.5), ("1:2", None)],
)
def test_clock(text: str, value: float | None) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("each", "of_all", "accumulated", "gpus"),
    [(4, 320, 5, [16.0]), (4, 64, 1, [16.0]), (8, 8, 1, [1.0]), (3, 64, 1, []), (0, 64, 1, [])],
)
def test_gpus_share_the_batch(each: int, of_all: int, accumulated: int, gpus: list[float]) -> None:
    text = (
        "***** Running training *****\n"
        f"  Instantaneous batch size per device = {each}\n"
        f"  Total train batch size (w. parallel, distributed & accumulation) = {of_all}\n"
        f"  Gradient Accumulation steps = {accumulated}\n"
    )
    assert values(text.encode(), "world_size", "hf_trainer") == gpus
