"""Batches: which runs one sbatch hands over, and where each finds its folder."""

from __future__ import annotations

from pathlib import Path

from hpc_train.submissions.slurm.job_arrays import allocation, batches
from tests.submissions.slurm.made import runs


def test_repetitions_of_a_point_are_one_array(tmp_path: Path) -> None:
    made = runs(tmp_path, "2-ab-r3", "1-cd-r1", "2-ab-r1", "2-ab-r2")
    first, second = batches(made, 1001)
    assert first.elements == (1, 2, 3)
    assert first.output == f"{tmp_path}/2-ab-r%a/logs/job.out"
    assert first.arguments == (f"{tmp_path}/2-ab-r", "")
    assert first.native_id(made[0], "77") == "77_3"
    assert first.native_id(made[0], "") == "_3"
    assert second.elements == ()
    assert second.arguments == (f"{tmp_path}/1-cd-r1",)
    assert second.native_id(made[1], "78") == "78"


def test_further_attempts_keep_their_ending(tmp_path: Path) -> None:
    (batch,) = batches(runs(tmp_path, "p-r2.3", "p-r10.3"), 1001)
    assert batch.elements == (2, 10)
    assert batch.output == f"{tmp_path}/p-r%a.3/logs/job.out"
    assert batch.arguments == (f"{tmp_path}/p-r", ".3")


def test_attempts_do_not_share_an_array(tmp_path: Path) -> None:
    assert len(batches(runs(tmp_path, "p-r1", "p-r2.2"), 1001)) == 2


def test_different_scripts_do_not_share_an_array(tmp_path: Path) -> None:
    made = runs(tmp_path, "p-r1") + runs(tmp_path, "p-r2", text="#!/bin/bash\nother\n")
    assert len(batches(made, 1001)) == 2


def test_a_number_beyond_the_largest_is_a_job_of_its_own(tmp_path: Path) -> None:
    first, second = batches(runs(tmp_path, "p-r1", "p-r2", "p-r3"), 3)
    assert (first.elements, second.elements) == ((1, 2), ())
    assert [len(batch.runs) for batch in batches(runs(tmp_path / "x", "p-r1", "p-r2"), 0)] == [1, 1]


def test_a_percent_sign_in_a_path_is_no_pattern(tmp_path: Path) -> None:
    home = tmp_path / "100%j"
    (batch,) = batches(runs(home, "p-r1", "p-r2"), 1001)
    assert batch.output == f"{tmp_path}/100%%j/p-r%a/logs/job.out"
    assert batch.arguments[0] == f"{home}/p-r"


def test_single_jobs_are_never_an_array(tmp_path: Path) -> None:
    made = runs(tmp_path, "20261121-043123-758208-09be612d", "20261121-043124-758208-09be612d")
    assert [len(batch.runs) for batch in batches(made, 1001)] == [1, 1]


def test_an_allocation_has_them_all(tmp_path: Path) -> None:
    made = runs(tmp_path, "p-r1", "q-r1")
    batch = allocation(tmp_path, made, tmp_path / ".allocations" / "a.sbatch", "x")
    assert batch.shared
    assert batch.output == f"{tmp_path}/.allocations/a.out"
    assert {batch.native_id(run, "9") for run in made} == {"9"}
