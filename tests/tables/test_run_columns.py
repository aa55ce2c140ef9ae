"""Runs as columns give the rows of the same runs as objects, whole and in parts."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.model.expected_study import ExpectedRun, undeclared
from hpc_train.model.run_columns import RunColumns, RunFields
from hpc_train.model.table_records import TableRecords
from hpc_train.tables import parts_of_runs
from hpc_train.tables.record_arrays import of_table
from hpc_train.tables.runs import run_frame

KINDS = [
    ExpectedRun(run_id="", axes=axes, repetition=1, topology=None, state=state, problem="",
                sizes={"nodes": nodes, "ranks": 4 * nodes}, conditions=conditions,
                restarts=nodes - 1)
    for nodes, axes, state, conditions in (
        (1, {"launcher": "srun"}, "COMPLETED", {"torch": "2.8"}),
        (2, {"launcher": "srun"}, "COMPLETED", {}),
        (2, {"lr": 0.5}, "FAILED", {"gpu": "A100"}),
    )
]  # fmt: skip
RUN = st.tuples(
    st.integers(0, 2), st.integers(1, 9), st.none() | st.floats(1, 9),
    st.none() | st.floats(1, 99), st.none() | st.floats(1, 1e9),
)  # fmt: skip


def columns(cells: list[Any]) -> RunColumns:
    kind, repetition, wall_s, _, energy = zip(*cells, strict=True)
    names = [f"r{place}" for place, _ in enumerate(cells)]
    wall = np.array(wall_s, dtype=np.float64)
    # Kinds without a run are left out.
    fields = RunFields(names, np.array(repetition), wall, np.array(energy, dtype=np.float64))
    return RunColumns(KINDS, np.array(kind), fields)[:]


def records(cells: list[Any]) -> TableRecords:
    rated = [place for place, cell in enumerate(cells) if cell[3] is not None]
    zero = np.zeros(len(rated), dtype=np.int64)
    return TableRecords(
        runs=[f"r{place}" for place, _ in enumerate(cells)], sources=["t.csv"],
        metrics=["samples_per_second"], scopes=["global"], run=np.array(rated, dtype=np.int64),
        source=zero, metric=zero, scope=zero, line=zero + 2,
        value=np.array([cells[place][3] for place in rated], dtype=np.float64),
    )  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(st.lists(RUN, min_size=1, max_size=9))
def test_columns_and_objects_give_the_same_rows(cells: list[Any]) -> None:
    study = undeclared("table", columns(cells))
    objects = msgspec.structs.replace(study, runs=tuple(study.runs))
    found, wanted = (run_frame(one, of_table(records(cells))) for one in (study, objects))
    pd.testing.assert_frame_equal(found, wanted)


@settings(deadline=None, max_examples=40)
@given(st.lists(RUN, min_size=3, max_size=9))
def test_parts_give_the_rows_of_the_whole(cells: list[Any]) -> None:
    study = undeclared("table", columns(cells))
    whole = run_frame(study, of_table(records(cells)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_of_runs, "_RUNS", 2)
        patch.setattr(parts_of_runs, "_RECORDS", 0)
        assert len(list(parts_of_runs.parts_of(study, of_table(records(cells))))) > 1
        pd.testing.assert_frame_equal(run_frame(study, of_table(records(cells))), whole)


def test_runs_are_read_and_cut_as_objects_are() -> None:
    runs = columns([(0, 1, None, None, 7.5), (2, 1, 5.0, None, None), (2, 2, None, None, None)])
    assert [run.run_id for run in runs] == ["r0", "r1", "r2"]
    assert (runs[1].state, runs[1].wall_s, runs[0].wall_s) == ("FAILED", 5.0, None)
    assert [run.job_energy_j for run in runs] == [7.5, None, None]
    assert runs[1:] == tuple(runs)[1:]
    assert len(runs[1:].kinds) == 1
