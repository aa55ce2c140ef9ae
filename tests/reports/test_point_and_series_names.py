"""The names of series in a sentence."""

from __future__ import annotations

import pytest

from hpc_train.model.study import ALONE
from hpc_train.reports.point_and_series_names import under


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (ALONE, ""),
        ("launcher=srun", " under srun"),
        ("env.X=1", " with env.X=1"),
        ("launcher=srun, env.X=1", " with launcher=srun, env.X=1"),
    ],
)
def test_only_a_launcher_alone_is_named_without_its_axis(series: str, words: str) -> None:
    assert under(series) == words
