from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpc_train.scaling.points import harmonic_means
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.arrays import along_axis
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
    times = along_axis(1 / np.array(values))
    assert limits == pytest.approx(list(map(float, harmonic_means(times, 0.95))), rel=1e-15)


def test_points_are_ordered_by_gpus_before_nodes() -> None:
    sizes = ((2, 4), (1, 8), (4, 1), (2, 1))
    asked = study([expected(f"{n}x{g}", nodes=n, gpus=g) for n, g in sizes])
    records = [r for n, g in sizes for r in rate(f"{n}x{g}", n * g)]
    frame = speedup_frame(run_frame(asked, records), asked)
    found = frame[["nodes", "gpus_per_node"]].to_numpy().tolist()
    assert found == [[2, 1], [4, 1], [1, 8], [2, 4]]


def test_a_failed_run_does_not_cut_the_times_of_its_point() -> None:
    runs = [expected("a"), expected("b", state="FAILED"), expected("c", nodes=2)]
    records = [record(name, "epoch_time", 9.0, step=1) for name in "ac"]
    records.append(record("b", "epoch_time", 9, parser="book", step=1))
    asked = study(runs)
    assert not speedup_frame(run_frame(asked, records), asked)["whole_seconds"].any()
