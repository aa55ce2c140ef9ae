"""Sizes of runs: as planned or stated, else from the log; series of logs without a size."""

from __future__ import annotations

import msgspec
import numpy as np

from hpc_train.tables.runs import series_of, sizes_of
from tests.tables.studies import expected, foreign

NAN = float("nan")


def test_the_plan_comes_before_the_log() -> None:
    runs = [expected("a", nodes=2, gpus=4), foreign("b"), foreign("c")]
    found = sizes_of(runs, np.array([1.0, 16.0, NAN]), np.array([3, 3, 3]))
    assert found.ranks.tolist() == [8, 16, 3]
    assert found.planned[0] == 8
    assert np.isnan(found.planned[1:]).all()


def test_logs_without_ranks_are_apart_unless_somebody_names_their_series() -> None:
    bare = [foreign("a"), foreign("b")]
    named = msgspec.structs.replace(foreign("c"), axes={"lr": 1})
    sized = msgspec.structs.replace(foreign("d"), sizes={"nodes": 2})
    runs = [*bare, named, sized]
    assert series_of(runs, np.full(4, NAN)) == ["a", "b", "lr=1", "all"]
    assert series_of(runs, np.full(4, 8.0)) == ["all", "all", "lr=1", "all"]
    assert series_of(bare[:1], np.array([NAN])) == ["all"]
