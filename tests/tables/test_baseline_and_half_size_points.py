"""Which runs have the values that a study's baseline names."""

from __future__ import annotations

import pandas as pd
import pytest

from hpc_train.tables.baseline_and_half_size_points import matching_runs

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
