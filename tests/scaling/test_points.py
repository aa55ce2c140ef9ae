from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from hpc_train.scaling.confidence_intervals import harmonic_means, ratio_interval
from hpc_train.scaling.record_arrays import Moments
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.studies import expected, rate, record, study


def table(runs: Sequence[tuple[int, float]], **fields: Any) -> pd.DataFrame:
    """Runs at (nodes, samples/s) of 4 GPUs a node."""
    named = [(f"r{place}", nodes, value) for place, (nodes, value) in enumerate(runs)]
    asked = study([expected(name, nodes=nodes, gpus=4) for name, nodes, _ in named], **fields)
    return speedup_frame(run_frame(asked, [r for n, _, x in named for r in rate(n, x)]), asked)


def test_one_series_that_is_mixed_does_not_spoil_another() -> None:
    batches = {("a", 1): 8, ("a", 2): 8, ("b", 1): 8, ("b", 2): 12, ("b", 4): 12}
    asked = study([expected(f"{s}{n}", nodes=n, axes={"nodes": n, "case": s}) for s, n in batches])
    records = [r for (s, n), batch in batches.items() for r in rate(f"{s}{n}", n, batch)]
    frame = speedup_frame(run_frame(asked, records), asked)
    assert frame["regime"].tolist() == ["strong"] * 2 + ["mixed"] * 3
    assert frame["speedup"].notna().tolist() == [True] * 2 + [False] * 3


def test_doubling_is_a_direct_ratio_of_two_points() -> None:
    values = {1: [100.0, 102.0], 2: [190.0, 197.0], 4: [350.0, 361.0], 6: [500.0]}
    frame = table([(n, x) for n, own in values.items() for x in own])
    direct = ratio_interval(values[4], values[2])
    found = frame.loc[2, ["doubling", "doubling_low", "doubling_high"]].tolist()
    assert found == pytest.approx([limit / 2 for limit in direct if limit is not None])
    assert frame["doubling"].isna().tolist() == [True, False, False, True]


def test_of_two_halves_the_one_with_the_same_nodes_is_taken() -> None:
    asked = study([expected(f"{n}x{g}", nodes=n, gpus=g) for n, g in ((1, 4), (2, 2), (2, 4))])
    records = rate("1x4", 40) + rate("2x2", 44) + rate("2x4", 72)
    frame = speedup_frame(run_frame(asked, records), asked)
    assert frame.at[2, "doubling"] == pytest.approx(72 / (2 * 40))


def test_karp_and_flatt_have_the_limits_of_the_speedup_turned_round() -> None:
    frame = table([(1, 100.0), (1, 101.0), (8, 700.0), (8, 707.0)])
    last = frame.iloc[1]
    for own, of in (("", ""), ("_low", "_high"), ("_high", "_low")):
        wanted = (1 / last[f"speedup{of}"] - 1 / 8) / (1 - 1 / 8)
        assert last[f"karp_flatt{own}"] == pytest.approx(wanted)
    assert frame["karp_flatt"].isna().tolist() == [True, False]


def test_cost_counts_the_ok_runs_per_sample_and_all_runs_in_what_was_spent() -> None:
    runs = [expected("a"), expected("b", state="FAILED"), expected("c", state="MISSING")]
    asked = study(runs)
    frame = run_frame(asked, rate("a", 1000.0))
    frame["wall_s"] = [3600.0, 1800.0, np.nan]
    row = speedup_frame(frame, asked).iloc[0]
    assert row["gpu_hours_per_million"] == pytest.approx(1e6 / 1000 / 3600)
    assert row["node_hours_per_million"] == pytest.approx(1e6 / 1000 / 3600)
    assert row["gpu_hours_spent"] == pytest.approx(1.5)
    assert row["not_ok"] == "1 FAILED, 1 MISSING"


def test_a_point_whose_runs_are_excluded_or_missing_is_a_row() -> None:
    asked = study(
        [expected("a"), *(expected(n, nodes=2, state=s) for n, s in (("b", "EXCLUDED"),
                                                                      ("c", "MISSING")))]
    )  # fmt: skip
    row = speedup_frame(run_frame(asked, rate("a", 10) + rate("b", 20)), asked).iloc[1]
    assert (row["n_ok"], row["n_submitted"]) == (0, 2)
    assert row["not_ok"] == "1 EXCLUDED, 1 MISSING"
    assert pd.isna(row["samples_per_second"])
    assert pd.isna(row["speedup"])


def test_a_billion_tokens_per_second_keep_their_small_spread() -> None:
    values = [1e9, 1e9 + 1, 1e9 - 1]
    frame = table([(1, x) for x in values])
    assert frame.at[0, "cv"] == pytest.approx(1e-9, rel=1e-6)
    limits = [frame.at[0, f"samples_per_second{end}"] for end in ("", "_low", "_high")]
    times = Moments.along_axis(1 / np.array(values))
    assert limits == pytest.approx(list(map(float, harmonic_means(times, 0.95))), rel=1e-15)


def test_no_time_is_below_zero_however_few_runs_there_are() -> None:
    asked = study([expected("a"), expected("b")])
    records = [record("a", "step_time", 1.0), record("b", "step_time", 2.0)]
    row = speedup_frame(run_frame(asked, records), asked).iloc[0]
    assert row["step_time_s"] == pytest.approx(1.5)
    factor = exp(12.7062 * 0.5 / 1.5)
    assert row["step_time_s_low"] == pytest.approx(1.5 / factor, rel=1e-4)
    assert row["step_time_s_high"] == pytest.approx(1.5 * factor, rel=1e-4)


def test_points_are_ordered_by_gpus_before_nodes() -> None:
    sizes = ((2, 4), (1, 8), (4, 1), (2, 1))
    asked = study([expected(f"{n}x{g}", nodes=n, gpus=g) for n, g in sizes])
    records = [r for n, g in sizes for r in rate(f"{n}x{g}", n * g)]
    frame = speedup_frame(run_frame(asked, records), asked)
    found = frame[["nodes", "gpus_per_node"]].to_numpy().tolist()
    assert found == [[2, 1], [4, 1], [1, 8], [2, 4]]


def test_the_rate_of_a_rank_is_that_of_the_job_over_its_ranks() -> None:
    asked = study([expected("a", nodes=2, gpus=4)])
    two = msgspec.structs.replace(asked.runs[0].topology, tasks_per_node=2)  # type: ignore[type-var]
    asked = msgspec.structs.replace(
        asked, runs=(msgspec.structs.replace(asked.runs[0], topology=two),)
    )
    frame = speedup_frame(run_frame(asked, rate("a", 80.0)), asked)
    assert frame.at[0, "samples_per_second_per_rank"] == pytest.approx(20)


def test_a_failed_run_does_not_cut_the_times_of_its_point() -> None:
    runs = [expected("a"), expected("b", state="FAILED"), expected("c", nodes=2)]
    records = [record(name, "epoch_time", 9.0, step=1) for name in "ac"]
    records.append(record("b", "epoch_time", 9, parser="book", step=1))
    asked = study(runs)
    assert not speedup_frame(run_frame(asked, records), asked)["whole_seconds"].any()


def test_of_two_halves_with_as_many_nodes_the_one_with_the_same_layout_is_taken() -> None:
    sizes = ((1, 4), (2, 2), (4, 2))
    asked = study([expected(f"{n}x{g}", nodes=n, gpus=g) for n, g in sizes])
    records = rate("1x4", 40) + rate("2x2", 44) + rate("4x2", 72)
    frame = speedup_frame(run_frame(asked, records), asked).set_index("nodes")
    assert frame.at[4, "doubling"] == pytest.approx(72 / (2 * 44))
