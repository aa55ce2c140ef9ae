"""Runs of one block are compared by their difference."""

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedRun
from hpc_train.scaling.comparison import fastest_frame
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.arrays import ratio_interval
from tests.scaling.studies import expected, rate, study

# Three allocations, of which the second is slow: both sizes lose the same.
ONE, TWO = (100.0, 80.0, 101.0), (190.0, 154.0, 193.0)


def runs(blocks: tuple[str, ...] = ("7/1", "7/2", "9/1"), gpus: int = 2) -> pd.DataFrame:
    """Return three runs at each of two sizes, the one at the larger size first."""
    asked: list[ExpectedRun] = []
    records: list[Record] = []
    for side, size, rates in (("b", gpus, TWO), ("a", 1, ONE)):
        for number, (value, block) in enumerate(zip(rates, blocks, strict=True), start=1):
            one = expected(f"{side}-r{number}", gpus=size)
            asked.append(msgspec.structs.replace(one, repetition=number, block=block))
            records += rate(one.run_id, value)
    return run_frame(study(asked), records)


def limits(table: pd.DataFrame, name: str = "speedup") -> list[float]:
    row = table.iloc[-1]
    return [float(row[f"{name}{end}"]) for end in ("", "_low", "_high")]


def student(values: np.ndarray) -> list[float]:
    """Return the interval of a mean of logarithms, by scipy."""
    low, high = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
    return [float(np.exp(one)) for one in (values.mean(), low, high)]


def test_blocks_give_students_interval_of_the_differences() -> None:
    points = speedup_frame(runs(), study([]))
    assert points["is_paired"].tolist() == [False, True]
    assert limits(points) == pytest.approx(student(np.log(TWO) - np.log(ONE)))


def test_without_blocks_the_samples_are_independent() -> None:
    points = speedup_frame(runs(("", "", "")), study([]))
    assert not points["is_paired"].any()
    assert limits(points) == pytest.approx([float(one or 0) for one in ratio_interval(TWO, ONE)])
    width = [
        high / low for _, low, high in (limits(points), limits(speedup_frame(runs(), study([]))))
    ]
    assert width[1] - 1 < (width[0] - 1) / 5


@pytest.mark.parametrize(
    "blocks",
    [("7/1", "7/2", ""), ("7/1", "7/1", "9/1")],
    ids=["a run without a block", "two runs of a point in one block"],
)
def test_incomplete_pairs_are_no_pairs(blocks: tuple[str, ...]) -> None:
    points = speedup_frame(runs(blocks), study([]))
    assert not points["is_paired"].any()
    assert limits(points) == pytest.approx([float(one or 0) for one in ratio_interval(TWO, ONE)])


def test_a_failed_partner_leaves_no_pairs() -> None:
    table = runs()
    failed = table["run_id"] == "a-r2"
    table = table.assign(state=table["state"].astype(str).mask(failed, "FAILED"))
    points = speedup_frame(table, study([]))
    assert not points["is_paired"].any()
    assert limits(points)[0] == pytest.approx(stats.gmean(TWO) / stats.gmean([100.0, 101.0]))


def test_series_of_one_study_are_compared_within_blocks() -> None:
    table = runs(gpus=1).assign(series=["srun"] * 3 + ["torchrun"] * 3)
    points = speedup_frame(table, study([]))
    (row,) = fastest_frame(table, points, study([])).to_dict("records")
    assert row["fastest"] == "srun"
    found = [row[f"ratio{end}"] for end in ("", "_low", "_high")]
    assert found == pytest.approx(student(np.log(TWO) - np.log(ONE)))
