"""Speedups, efficiencies and more of published tables, each to the digits that were printed."""

import pandas as pd
import pytest

from hpc_train.base.errors import ReportError
from hpc_train.jobs.study import Scaling
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.scaling_fits import fits
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.published_tables import PUBLISHED, half_unit, measured, rows_of

GPT3 = {"speedups": (1, 1.435, 6.798, 9.677, 11.833, 14.321, 14.865),
        "percents": (100, 95.7, 85.0, 80.6, 74.0, 71.6, 70.8)}  # fmt: skip


def table(name: str, scaling: Scaling | None = None, parser: str = "event") -> pd.DataFrame:
    study, records = measured(name, scaling, parser)
    return speedup_frame(run_frame(study, records), study)


def by_gpus(frame: pd.DataFrame, column: str) -> dict[int, float]:
    """Return a column of a table in which each number of GPUs stands once."""
    return {int(n): float(x) for n, x in zip(frame["gpus"], frame[column], strict=True)}


def tolerance(name: str, speedup: float, row: int) -> float:
    """Return half of the last printed digit; and that of both rates, where they were cut later."""
    metric = next(key for key in rows_of(name)[0] if key.endswith("_per_second"))
    texts = [rows_of(name)[number][metric] for number in (0, row)]
    return 0.005 + speedup * sum(half_unit(text) / float(text) for text in texts)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_speedups_and_efficiencies(name: str) -> None:
    published, frame = PUBLISHED[name], table(name)
    assert frame["n_ok"].tolist() == [1] * len(rows_of(name))
    # One job is no sample: nothing has an interval.
    assert frame[["speedup_low", "speedup_high", "efficiency_low"]].isna().all(axis=None)
    for row, (own, printed) in enumerate(zip(frame["speedup"], published.speedups, strict=False)):
        allowed = tolerance(name, own, row) if published.late else half_unit(str(printed))
        assert abs(own - printed) <= allowed + 1e-9, (row, own, printed)
    assert len(published.speedups) in (0, len(frame))
    for own, printed in zip(frame["efficiency"], published.percents, strict=False):
        assert abs(100 * own - printed) <= half_unit(str(printed)) + 1e-9
    assert len(published.percents) in (0, len(frame))


def test_24_speedups_of_bert_one_of_them_above_the_ideal() -> None:
    names = [name for name in PUBLISHED if name.startswith("nvidia_bert")]
    frames = [table(name, "strong") for name in names]
    assert sum(map(len, frames)) == 24
    above = [(name, round(e, 3)) for name, f in zip(names, frames, strict=True)
             for e in f["efficiency"] if e > 1.002]  # fmt: skip
    assert above == [("nvidia_bert_fp16_s128", 1.009)]
    with pytest.raises(ReportError, match="declared weak scaling, but the data are strong"):
        table(names[0], "weak")


def test_cut_seconds_of_the_book() -> None:
    frame = table("book", "weak", parser="book")
    assert by_gpus(frame, "speedup") == pytest.approx({1: 1, 8: 6.5})
    assert by_gpus(frame, "efficiency") == pytest.approx({1: 1, 8: 0.8125})
    # 39 s may be 39.99 s and 6 s 6.99 s.
    flags = map(str, frame["flags"].tolist()[1])
    assert "whole seconds: true speedup between 5.57 and 6.67" in flags


def test_gpt3_is_no_strong_scaling_but_has_times_to_train() -> None:
    with pytest.raises(ReportError, match=r"declared strong scaling, .* 2048 in row 1 and 3072"):
        table("mlperf_gpt3", "strong")
    with pytest.raises(ReportError, match="declared weak scaling, but the data are mixed"):
        table("mlperf_gpt3", "weak")
    frame = table("mlperf_gpt3")
    assert set(frame["regime"]) == {"mixed"}
    times = frame["time_to_train_s"].to_numpy(dtype="float64")
    speedups = frame["speedup"]
    assert speedups.tolist() == pytest.approx((times[0] / times).tolist())
    gpus = frame["gpus"].to_numpy(dtype="float64")
    assert gpus[0] == 512
    percents = 100 * speedups / (gpus / gpus[0])
    assert speedups.tolist() == pytest.approx(GPT3["speedups"], abs=0.00051)
    assert percents.tolist() == pytest.approx(GPT3["percents"], abs=0.051)


def test_the_outlier_of_mpt_1b_stays_and_widens_the_fit() -> None:
    study, records = measured("mpt_1b_a100")
    whole = speedup_frame(run_frame(study, records), study)
    assert whole["efficiency"].idxmin() == 2
    (amdahl, usl) = fits(whole)
    (without, _) = fits(whole.drop(index=2))
    assert usl.refused == "needs 6 sizes, there are 5"
    assert without.rms < 0.006 < 0.05 < amdahl.rms


def test_four_gpus_on_two_nodes_are_not_four_on_one() -> None:
    frame = table("athena")
    sizes = frame[["nodes", "gpus_per_node", "gpus"]].to_numpy().tolist()
    assert sizes == [[1, 1, 1], [1, 4, 4], [2, 2, 4], [2, 4, 8]]
    one_node, two_nodes = frame["speedup"].tolist()[1:3]
    assert two_nodes > 1.09 * one_node
    # Two points of one size are one size: 1, 4 and 8 GPUs.
    (amdahl, usl) = fits(frame)
    assert amdahl.points == 4
    assert amdahl.refused == "does not fit: residual 12 %, more than 10 %, without repetitions"
    assert usl.refused == "needs 6 sizes, there are 3"


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name.startswith("nvidia_bert")])
def test_the_last_point_foretold_from_those_before(name: str) -> None:
    # Published curves of several nodes: Amdahl misses the next doubling by 7.5 % at worst.
    frame = table(name)
    amdahl = fits(frame.iloc[:-1])[0]
    if (frame["efficiency"].iloc[:-1].round(3) > 1).any():
        assert amdahl.refused.startswith("superlinear")
        return
    told, seen = amdahl.curve[-1], frame["speedup"].iloc[-1]
    assert told.q == pytest.approx(32)
    assert told.speedup == pytest.approx(seen, rel=0.13)
