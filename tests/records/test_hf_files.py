"""Files and tables of Hugging Face's Trainer, and what it says of its machine."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.record import Record
from hpc_train.records.collect import collect

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
