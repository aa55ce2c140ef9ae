"""What two programs print is no series: a sample of one is a sequence, of the other an image."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from hpc_train.base.errors import ReportError
from hpc_train.logs.record import Record
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from hpc_train.scaling.split_series import (
    Separated,
    compared,
    difference,
    levels,
    merged,
    separated,
)
from tests.scaling.studies import expected, record, study


def said(run: str, parser: str, metric: str, value: float) -> Record:
    return msgspec.structs.replace(record(run, metric, value), parser=parser)


def parted(*runs: list[tuple[str, str, float]], allowed: tuple[str, ...] = ()) -> Separated:
    """Runs on 1, 2 … nodes, each with what parsers found."""
    names = [f"n{nodes}" for nodes, _ in enumerate(runs, start=1)]
    asked = msgspec.structs.replace(
        study([expected(name, nodes=nodes) for nodes, name in enumerate(names, start=1)]),
        allow_mixed=allowed,
    )
    found = [said(name, *each) for name, own in zip(names, runs, strict=True) for each in own]
    return separated(run_frame(asked, found), asked)


def speedups(found: Separated) -> list[float]:
    values: list[Any] = speedup_frame(found.runs, study([]))["speedup"].dropna().tolist()
    return values


MEGATRON = [("megatron", "samples_per_second", 100.0)]
IMAGENET = [("imagenet", "samples_per_second", 440.0)]


def test_frameworks_are_not_mixed_in_a_series_unless_a_person_allows_it() -> None:
    found = parted(MEGATRON, IMAGENET)
    assert set(found.runs["series"]) == {"parser=megatron", "parser=imagenet"}
    assert 4.4 not in speedups(found)
    (note,) = found.notes
    assert note == (
        "parser differs: megatron (1 run, n1), imagenet (1 run, n2): separate series; "
        "--allow-mixed parser combines them"
    )
    mixed = parted(MEGATRON, IMAGENET, allowed=("parser",))
    assert speedups(mixed) == [1.0, pytest.approx(4.4)]
    assert mixed.notes == ("allowed to differ: parser: megatron (1 run), imagenet (1 run)",)


def test_one_program_above_another_is_one_also_where_one_of_them_is_silent() -> None:
    above = ("deepspeed", "step_time", 0.1)
    found = parted([*MEGATRON, above], MEGATRON, [("deepspeed", "samples_per_second", 190.0)])
    assert set(found.runs["series"]) == {"all"}
    assert {own["parser"] for own in found.runs["conditions"]} == {"deepspeed / megatron"}


def test_samples_and_tokens_are_not_mixed_either() -> None:
    tokens = [("megatron", "tokens_per_second", 2e5)]
    found = parted(MEGATRON, tokens)
    assert set(found.runs["series"]) == {"counted=samples", "counted=tokens"}
    both = parted([*MEGATRON, *tokens], tokens)
    assert set(both.runs["series"]) == {"all"}


def test_sequences_of_two_lengths_are_two_kinds_of_sample() -> None:
    def long(length: float) -> list[tuple[str, str, float]]:
        return [*MEGATRON, ("megatron", "sequence_length", length)]

    assert set(parted(long(2048), long(2048)).runs["series"]) == {"all"}
    assert "sequence_length=4096" in set(parted(long(2048), long(4096)).runs["series"])


def test_what_a_person_states_has_no_program() -> None:
    found = parted([("table", "samples_per_second", 100.0)], [("table", "step_time", 0.1)])
    assert all("parser" not in own for own in found.runs["conditions"])


def of(*conditions: dict[str, str] | None, **columns: list[Any]) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame({"conditions": list(conditions), **columns})
    return table


def test_fields_of_an_axis_or_that_may_differ_are_not_compared() -> None:
    runs = of(dict.fromkeys(("alpha", "torch", "precision", "model", "throttled"), "1"), None)
    assert compared(runs, ()) == ("model", "precision", "torch", "alpha")
    assert compared(runs.drop(columns="conditions"), ()) == ()
    assert compared(runs, ("torch", "alpha")) == ("model", "precision")
    axes = {"axis.train.precision": [1, 1], "axis.alpha": [1, 1]}
    assert compared(runs.assign(**axes), ("nccl",)) == ("model", "torch")
    with pytest.raises(ReportError, match="--allow-mixed torhc: no such field; did you mean 'tor"):
        compared(runs, ("torhc",))


@pytest.mark.parametrize(
    ("field", "values", "numbers"),
    [
        ("torch", ["2", None, "3", "2"], [0, -1, 1, 0]),
        ("torch", ["100", "101"], [0, 1]),
        ("parameters", ["100", "104", "111", None], [0, 0, 1, -1]),
        ("parameters", ["100", "7B"], [0, 1]),
        ("parameters", ["100", "0"], [0, 1]),
    ],
)
def test_only_numbers_of_parameters_may_differ_by_a_few_percent(
    field: str, values: list[str | None], numbers: list[int]
) -> None:
    assert levels(field, values).tolist() == numbers


def test_the_first_recorded_value_of_some_runs_counts() -> None:
    runs = of({"a": "no"}, {"a": "1"}, None, {"a": "2", "b": "3", "c": ""}, {"b": "4"})
    places = np.array([1, 2, 3, 4])
    assert merged(runs, places, ("a", "b", "c", "d")) == {"a": "1", "b": "3"}
    assert merged(runs, places[:0], ("a",)) == merged(runs, places, ()) == {}


def test_a_difference_is_in_a_field_that_both_recorded() -> None:
    one, other = {"a": "1", "b": "1", "c": "1"}, {"b": "1", "c": "2", "d": "2"}
    assert difference(one, other, ("a", "b", "c", "d")) == "c"
    assert difference(one, other, ("a", "b", "d")) is None
    near = {"parameters": "100"}, {"parameters": "103"}
    assert difference(*near, ("parameters",)) is None


def recorded(*records: Record, conditions: dict[str, str] | None = None) -> dict[str, str]:
    """Return the conditions of the first of two runs."""
    own = msgspec.structs.replace(expected("n1"), conditions=conditions or {})
    frame = run_frame(study([own, expected("n2")]), list(records))
    found: dict[str, str] = frame["conditions"].tolist()[0]
    return {name: found[name] for name in found if name not in ("parser", "counted")}


def parameters(value: float, variant: str = "", run: str = "n1", line: int = 1) -> Record:
    return record(run, "parameters", value, variant=variant, line=line)


def test_the_size_of_a_model_is_the_sum_of_its_parts_unless_it_is_stated() -> None:
    parts = [parameters(3e9, "a"), parameters(3e9, "a", line=2), parameters(1e9, "b")]
    unusable = [parameters(0, "c"), parameters(math.inf, "d"), parameters(5, "", run="n2")]
    assert recorded(*parts, *unusable) == {"parameters": "4000000000"}
    assert recorded(*parts, conditions={"parameters": "7"}) == {"parameters": "7"}
    assert recorded(*unusable) == {}


def test_the_longest_sequence_of_a_run_counts_unless_it_is_stated() -> None:
    lengths = [record("n1", "sequence_length", value) for value in (512, 4096, 1024, 0)]
    assert recorded(*lengths) == {"sequence_length": "4096"}
    assert recorded(*lengths, conditions={"sequence_length": "8"}) == {"sequence_length": "8"}
    assert recorded(record("n2", "sequence_length", 8), record("n1", "sequence_length", 0)) == {}
