"""A dry run: what would be said, what sbatch thinks of the scripts, and nothing is left."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.errors import HpcTrainError, PlanError
from hpc_train.pipeline.dry_run import dry_run
from hpc_train.pipeline.prepared import Prepared
from hpc_train.pipeline.submit import DEFAULT_OPTIONS, SubmitOptions
from tests.pipeline.on_slurm import RESULTS, job, study
from tests.submissions.slurm.fake_slurm import FakeSlurm

# It keeps a copy of the script, which is gone afterwards.
VERDICT = 'cp "${@: -1}" "$S/script.$n"; echo "sbatch: Job 9 to start" >&2; exit 0'
REFUSED = (
    "echo 'allocation failure: Invalid account or account/partition combination specified' >&2; "
    "exit 1"
)


def said(prepared: Prepared, wish: SubmitOptions = DEFAULT_OPTIONS) -> list[str]:
    return list(dry_run(prepared, RESULTS, wish))


def test_sbatch_is_asked_about_the_script(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", VERDICT)
    prepared = job("time=1h")
    assert said(prepared) == [
        "cost: 1 run: at most no GPUs, 1 core-hours",
        "sbatch --test-only: Job 9 to start",
    ]
    (argv,) = slurm.calls("sbatch")
    assert argv[0] == "--test-only"
    assert not Path(argv[1]).exists()
    assert (slurm.folder / "script.1").read_text() == prepared.points[0].script.text
    assert not RESULTS.exists()


def test_each_point_of_a_study_is_asked_about(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", VERDICT)
    prepared = study("time=30m", "repetitions=3")
    cost, resolved, *verdicts = said(prepared)
    assert cost == "cost for the whole study: 6 runs: at most no GPUs, 3 core-hours"
    assert resolved.startswith("3 repetitions resolve about ±5 %")
    assert verdicts == [
        f"sbatch --test-only {point.stem}: Job 9 to start" for point in prepared.points
    ]


def test_a_nested_study_is_one_question(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", VERDICT)
    prepared = study("placement=nested", "time=30m")
    assert said(prepared)[2:] == ["sbatch --test-only of the allocation: Job 9 to start"]
    assert prepared.allocation is not None
    assert (slurm.folder / "script.1").read_text() == prepared.allocation.text


def test_a_refusal_is_a_verdict_not_an_error(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", REFUSED)
    (_, verdict) = said(job())
    assert verdict.startswith("sbatch --test-only: refused: allocation failure: Invalid account")
    assert "--account" in verdict


def test_a_budget_counts(slurm: FakeSlurm) -> None:
    with pytest.raises(PlanError, match="--max-gpu-hours 1 cannot be checked"):
        said(job(), SubmitOptions(max_gpu_hours=1))
    assert slurm.calls("sbatch") == []


def test_without_sbatch_nobody_has_said_anything(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert said(job())[-1] == (
        "sbatch is not installed here, so it was not tested whether the cluster accepts this"
    )


def test_what_could_not_start_is_an_error(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HpcTrainError, match=r"the folder .*nowhere does not exist"):
        said(job("workdir=nowhere"))
    with pytest.raises(HpcTrainError, match="nothing does not exist"):
        said(job("command=[./nothing]", site="local"))
