"""Accuracies and losses that did not change: at most one study in twenty has a false flag."""

from math import sqrt

import numpy as np
import pandas as pd
import pytest

from hpc_train.scaling.comparison import comparison_frame
from hpc_train.scaling.measurements import FlagCode
from hpc_train.scaling.points import noise_limit
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.arrays import along_axis
from tests.scaling.studies import expected, rate, study

NOMINAL = 0.05
ACCURACIES = ([0.7, 0.71, 0.72], [0.6, 0.61, 0.63])


def most(studies: int) -> float:
    """Return the nominal share plus three standard errors of a share among so many studies."""
    return NOMINAL + 3 * sqrt(NOMINAL * (1 - NOMINAL) / studies)


def frame_of(sizes: int, n: int) -> tuple[pd.DataFrame, object]:
    names = [(nodes, f"{nodes}-{job}") for nodes in range(1, sizes + 1) for job in range(n)]
    asked = study([expected(name, nodes=nodes) for nodes, name in names])
    records = [r for nodes, name in names for r in rate(name, float(nodes))]
    return run_frame(asked, records), asked


def alarms(frame: pd.DataFrame, asked: object) -> bool:
    flags = speedup_frame(frame, asked)["flags"]  # type: ignore[arg-type]
    codes = {flag.code for own in flags for flag in own}
    return bool(codes & {FlagCode.ACCURACY, FlagCode.LOSS})


def test_few_reports_have_a_false_flag_of_accuracy_or_loss() -> None:
    frame, asked = frame_of(6, 3)
    random, studies = np.random.default_rng(5), 100
    frame["samples_seen"] = 100.0
    found = 0
    for _ in range(studies):
        frame["accuracy"] = 0.7 + 0.003 * random.standard_normal(len(frame))
        frame["loss"] = 2 + 0.01 * random.standard_normal(len(frame))
        found += alarms(frame, asked)
    # Two standard errors without a correction flag six studies of ten.
    assert found / studies < most(studies)


@pytest.mark.parametrize("column", ["accuracy", "loss"])
def test_a_change_of_many_standard_errors_is_flagged(column: str) -> None:
    frame, asked = frame_of(6, 3)
    frame["samples_seen"] = 100.0
    frame[column] = 0.7 + 0.001 * np.random.default_rng(5).standard_normal(len(frame))
    assert not alarms(frame, asked)
    frame.loc[frame["nodes"] == 6, column] -= 0.1
    assert alarms(frame, asked)


def test_a_comparison_is_corrected_for_its_points() -> None:
    pair = [along_axis(np.array(x)) for x in ACCURACIES]
    limit = 100 * float(noise_limit(pair[0], pair[1], 1 - 0.05 / 4))
    frame, _ = frame_of(5, 3)
    sides = [frame.assign(accuracy=np.tile(values, 5)) for values in ACCURACIES]
    # One run of a point has no spread.
    sides[1] = sides[1].drop(index=sides[1].index[-2:])
    found = comparison_frame(*sides)["accuracy_limit_pp"]
    assert found[:4].tolist() == pytest.approx([limit] * 4)
    assert np.isnan(found[4])
