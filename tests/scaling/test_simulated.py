"""Thousands of studies whose truth is known, each made into a table like any other."""

import numpy as np
import pandas as pd
import pytest

from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.studies import expected, rate, study

NOISE = 0.02


def simulated(truth: dict[int, float], studies: int, n: int, seed: int = 7) -> pd.DataFrame:
    """Points of many series, each with n jobs at sizes of which the true speed is known."""
    random = np.random.default_rng(seed)
    runs, records = [], []
    for series in range(studies):
        for nodes, speed in truth.items():
            for job, noise in enumerate(random.standard_normal(n)):
                name, axes = f"{series}-{nodes}-{job}", {"nodes": nodes, "case": series}
                runs.append(expected(name, nodes=nodes, axes=axes))
                records += rate(name, speed * (1 + NOISE * noise))
    asked = study(runs)
    return speedup_frame(run_frame(asked, records), asked)


def covered(points: pd.DataFrame, name: str, truth: float) -> float:
    inside = (points[f"{name}_low"] <= truth) & (truth <= points[f"{name}_high"])
    return float(inside.mean())


@pytest.mark.parametrize(("n", "studies"), [(3, 1500), (5, 1500), (10, 900)])
def test_95_of_100_intervals_of_a_table_hold_the_truth(n: int, studies: int) -> None:
    points = simulated({1: 1.0, 2: 1.8, 4: 3.2}, studies, n)
    two, four = (points[points["nodes"] == nodes] for nodes in (2, 4))
    assert len(two) == len(four) == studies
    for own, name, truth in (
        (two, "speedup", 1.8),
        (four, "efficiency", 0.8),
        (four, "doubling", 3.2 / 3.6),
        (four, "karp_flatt", 0.8 / (3.2 * 3)),
        (two, "samples_per_second", 1.8),
    ):
        assert 0.93 <= covered(own, name, truth) <= 0.98, name
    # A twentieth of the intervals misses: were they twice as wide, the share alone would not say.
    wide = (two["speedup_high"] - two["speedup_low"]).mean() / 1.8
    assert wide == pytest.approx({3: 0.099, 5: 0.059, 10: 0.037}[n], abs=0.0015)
