"""What two programs print is no series: a sample of one is a sequence, of the other an image."""

import math
from typing import Any

import msgspec
import pytest

from hpc_train.logs.record import Record
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from hpc_train.scaling.split_series import Separated, separated
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
