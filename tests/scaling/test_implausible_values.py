"""Values that cannot be right are flagged at any size of the numbers, and sound ones never."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from hpc_train.scaling.caveats import GAP, far_from_most, with_implausible
from hpc_train.scaling.measurements import FlagCode
from hpc_train.scaling.runs import COLUMNS
from hpc_train.sites.gpu_specs import most_gib


def table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a run table with rows of one series: 4 GPUs per node unless a row says otherwise."""
    nothing: dict[str, Any] = dict.fromkeys(COLUMNS, np.nan)
    usual = {
        "state": "COMPLETED", "series": "all", "nodes": 1, "gpus_per_node": 4, "tasks_per_node": 4,
        "transport": "", "conditions": {}, "flags": (), "problem": "",
    }  # fmt: skip
    every = [{**nothing, **usual, "run_id": f"r{i}", **row} for i, row in enumerate(rows)]
    for row in every:
        row["gpus"] = row["ranks"] = row["nodes"] * 4
    frame: pd.DataFrame = pd.DataFrame(every)
    return frame


def flagged(rows: Sequence[Mapping[str, Any]], code: FlagCode) -> list[int]:
    found = with_implausible(table(rows))["flags"]
    return [i for i, flags in enumerate(found) if code in {flag.code for flag in flags}]


def steps(*times: float) -> list[dict[str, Any]]:
    """Strong scaling: 1, 2, 4 ... nodes with these step times and their rates."""
    return [
        {"nodes": 2**i, "step_time_s": t, "global_batch": 256.0, "samples_per_second": 256 / t}
        for i, t in enumerate(times)
    ]


def test_milliseconds_among_seconds_are_flagged_once() -> None:
    rows = steps(0.512, 0.27, 140.0, 0.075)
    assert flagged(rows, FlagCode.UNIT) == [2]
    flags: Any = with_implausible(table(rows)).at[2, "flags"]
    (flag,) = flags
    assert flag.detail == "140 s a step, per GPU 1,037 times the other runs"


@pytest.mark.parametrize("column", ["samples_per_second", "tokens_per_second"])
def test_thousands_are_flagged_in_rates(column: str) -> None:
    rows = [{"nodes": n, column: 500.0 * n / (1000 if n == 4 else 1)} for n in (1, 2, 4, 8)]
    assert flagged(rows, FlagCode.UNIT) == [2]


def test_another_series_and_runs_without_a_result_are_not_compared() -> None:
    rows = steps(0.512, 0.27, 0.14)
    other = {"series": "cpu", "samples_per_second": 0.5}
    failed = {"state": "FAILED", "samples_per_second": 0.5}
    assert flagged([*rows, other, failed], FlagCode.UNIT) == []


def test_a_loss_of_efficiency_over_many_sizes_is_no_unit() -> None:
    # From 1 to 4096 nodes the speed per GPU falls to a thousandth, step by step.
    rows = [{"nodes": 2**i, "samples_per_second": 500.0 * 2 ** (i / 6)} for i in range(13)]
    assert flagged(rows, FlagCode.UNIT) == []


speeds = st.lists(st.floats(0.5, 2), min_size=3, max_size=8)


@settings(deadline=None)
@given(speeds, st.floats(1e-90, 1e90), st.integers(0, 7), st.sampled_from([1e-3, 1e3, 1e6]))
def test_a_thousand_is_found_in_every_unit(
    relative: list[float], unit: float, place: int, factor: float
) -> None:
    values = np.log10(np.array(relative) * unit)
    series = np.zeros(len(values), dtype=np.int64)
    assert list(far_from_most(values, series)) == []
    wrong = place % len(values)
    values[wrong] += np.log10(factor)
    found = dict(far_from_most(values, series))
    assert list(found) == [wrong]
    # The others are within a factor of 4.
    assert abs(found[wrong] - np.log10(factor)) < np.log10(4.01) < np.log10(GAP)


def results(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the rows that still have a result."""
    states = with_implausible(table(rows))["state"]
    return [i for i, state in enumerate(states) if state == "COMPLETED"]


def test_runs_of_one_point_in_two_units_have_no_mean() -> None:
    names = ["step_time_s", "samples_per_second", "tokens_per_second", "epoch_time_s"]
    for name in [*names, "time_to_train_s"]:
        one = [{name: 0.5 + i / 100, "global_batch": 256.0} for i in range(3)]
        other = [{name: 500.0 + i, "global_batch": 256.0} for i in range(2)]
        assert results([*one, *other]) == [0, 1, 2], name
        assert results([*one[:2], *other]) == [], name
        # A mistake at a size of its own is shown, with its flag.
        assert results([*one, *({**row, "nodes": 2} for row in other)]) == [0, 1, 2, 3, 4], name


def test_a_run_in_another_unit_says_why_it_has_no_result() -> None:
    rows: list[dict[str, Any]] = [{"samples_per_second": rate} for rate in (500.0, 501.0, 0.502)]
    (wrong,) = with_implausible(table(rows)).query("state != 'COMPLETED'").to_dict("records")
    assert wrong["state"] == "UNPARSED"
    assert wrong["problem"] == (
        "the unit may be wrong: 0.502 samples/s, per GPU 0.001 times the other runs; "
        "write the values of all runs in one unit"
    )


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("NVIDIA A100-SXM4-80GB", 80), ("NVIDIA A100-SXM4-40GB", 40), ("a100", 80),
        ("Tesla V100-SXM2-32GB", 32), ("NVIDIA H100 80GB HBM3", 80), ("h100", 96),
        # The size in this name is that of the CPU's memory.
        ("NVIDIA GH200 480GB", 144), ("AMD Instinct MI250X", 128), ("a100_40gb", 40),
        ("NVIDIA RTX 6000 Ada 48GB", 48), ("gpu", None), ("A1000X", None), ("", None),
    ],
)  # fmt: skip
def test_the_memory_of_a_gpu_is_known_by_its_name(name: str, gib: float | None) -> None:
    assert most_gib(name) == gib


def test_memory_above_that_of_the_gpus_of_a_process_is_flagged() -> None:
    gpu: dict[str, Any] = {"conditions": {"gpu": "NVIDIA A100-SXM4-80GB"}}
    rows: list[dict[str, Any]] = [
        {"memory_gib": 79.2, **gpu}, {"memory_gib": 80.9, **gpu}, {"memory_gib": 120.0, **gpu},
        {"memory_gib": 120.0, "tasks_per_node": 2, **gpu}, {"memory_gib": 120.0},
        {"memory_gib": 120.0, "conditions": {"gpu_type": "a100"}},
    ]  # fmt: skip
    assert flagged(rows, FlagCode.MEMORY) == [2, 5]


@pytest.mark.parametrize(
    ("text", "is_flagged"),
    [("yes", True), ("HW thermal slowdown", True), ("no", False), ("False", False), ("", False)],
)
def test_a_throttled_run_is_flagged(text: str, *, is_flagged: bool) -> None:
    rows = [{"conditions": {"throttled": text}}, {"conditions": {"throttled": "no"}}]
    assert flagged(rows, FlagCode.THROTTLED) == ([0] if is_flagged else [])


def test_a_transport_unlike_that_of_most_runs_is_flagged() -> None:
    ways = ("NVLink", "IB+GDR", "IB+GDR", "sockets", "")
    rows = [{"nodes": min(i + 1, 4), "transport": way} for i, way in enumerate(ways)]
    assert flagged(rows, FlagCode.TRANSPORT) == [3]
    assert flagged(rows[:2], FlagCode.TRANSPORT) == []
    assert flagged([{"transport": way} for way in ("P2P", "SHM")], FlagCode.TRANSPORT) == [0, 1]


def test_memory_in_two_units_costs_no_result() -> None:
    rows = [{"samples_per_second": 500.0, "memory_gib": gib} for gib in (12.0, 12.5, 12500.0)]
    assert flagged(rows, FlagCode.UNIT) == [2]
    assert results(rows) == [0, 1, 2]
