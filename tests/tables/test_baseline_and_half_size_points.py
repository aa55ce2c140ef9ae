"""Which runs have the values that a study's baseline names."""

from __future__ import annotations

import pandas as pd
import pytest

from hpc_train.tables.baseline_and_half_size_points import matching_runs
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.tables.studies import expected, rate, study

RUNS = pd.DataFrame(
    {
        "nodes": pd.array([1, 2, None], dtype="Int64"),
        "axis.launcher": ["srun", None, "srun"],
        "axis.batch": [64, "64", 128],
    }
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [True, True, True]),
        ({"nodes": 1}, [True, False, False]),
        ({"nodes": "1"}, [True, False, False]),
        ({"launcher": "srun"}, [True, False, True]),
        ({"launcher": "None"}, [False, False, False]),
        # A table may hold as text what a study writes as a number.
        ({"batch": 64}, [True, True, False]),
        ({"batch": "64", "nodes": 2}, [False, True, False]),
        ({"colour": "red"}, [False, False, False]),
    ],
)
def test_a_value_is_the_same_as_a_number_and_as_text(
    wanted: dict[str, object], found: list[bool]
) -> None:
    assert matching_runs(RUNS, wanted).tolist() == found


def test_of_several_points_of_half_the_size_the_one_with_as_many_gpus_on_a_node_counts() -> None:
    sizes = {"4x1": (4, 1, 60.0), "1x4": (1, 4, 100.0), "2x4": (2, 4, 150.0)}
    runs = [expected(name, nodes=nodes, gpus=gpus) for name, (nodes, gpus, _) in sizes.items()]
    records = [one for name, (*_, value) in sizes.items() for one in rate(name, value)]
    points = speedup_frame(run_frame(study(runs), records), study(runs))
    doubled = points[(points["nodes"] == 2) & (points["gpus_per_node"] == 4)]
    assert doubled["doubling"].tolist() == [pytest.approx(150 / (2 * 100))]
