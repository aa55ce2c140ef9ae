"""What a site says of submissions: where they come from, and how large a study may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hpc_train.cli.group import cli
from hpc_train.errors import PlanError
from hpc_train.pipeline.submit import submit
from tests.pipeline.on_slurm import RESULTS, job, profile, study
from tests.submissions.slurm.fake_slurm import FakeSlurm


def test_jobs_are_submitted_from_the_sites_folder_only(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = profile("submit_from: $WHERE_RUNS_GO")
    monkeypatch.delenv("WHERE_RUNS_GO", raising=False)
    with pytest.raises(
        PlanError, match=r"big\.yaml:6: big accepts jobs from .* not defined in this shell"
    ):
        submit(job(site=site), RESULTS, [])
    Path("there").mkdir()
    monkeypatch.setenv("WHERE_RUNS_GO", str(Path("there").absolute()))
    with pytest.raises(
        PlanError, match=r"from \$WHERE_RUNS_GO only \(/.*there\), and this is"
    ) as no:
        submit(job(site=site), RESULTS, [])
    assert no.value.hint == 'cd "$WHERE_RUNS_GO" and submit from there'
    assert slurm.calls("sbatch") == []
    monkeypatch.setenv("WHERE_RUNS_GO", str(Path.cwd()))
    submit(job(site=site), RESULTS, [])
    assert len(slurm.calls("sbatch")) == 1


def test_a_folder_below_and_a_link_are_there(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("real/below").mkdir(parents=True)
    Path("link").symlink_to("real")
    monkeypatch.setenv("SCRATCH", str(Path("link").absolute()))
    monkeypatch.chdir("real/below")
    submit(job(site=profile("submit_from: $SCRATCH")), RESULTS, [])
    assert len(slurm.calls("sbatch")) == 1


def test_a_script_may_be_rendered_elsewhere_with_a_warning(slurm: FakeSlurm) -> None:
    site = profile("submit_from: /nowhere/scratch")
    job(site=site)
    done = CliRunner().invoke(cli, ["render", "job.yaml", "--site", site])
    assert done.exit_code == 0
    assert "warning: big.yaml:6: big accepts jobs from /nowhere/scratch only" in done.stderr
    assert done.stdout.startswith("#!/bin/bash")


@pytest.mark.parametrize(
    ("limit", "settings", "said"),
    [
        ("max_study_jobs: 3", (), "study jobs = 3, but this one has 4 (2 points x 2)"),
        ("max_study_nodes: 1", ("job.resources.nodes=2",), "nodes = 1, but this one has 2"),
        (
            "max_study_gpu_hours: 3",
            ("job.resources.gpus_per_node=1", "job.resources.time=1h"),
            "study gpu hours = 3, but this one has 4 (every run until its time limit)",
        ),
        (
            "max_study_gpu_hours: 3",
            ("job.resources.gpus_per_node=1",),
            "limits the GPU-hours of a study, but this one is 4 runs without a time limit",
        ),
    ],
)
def test_a_study_that_is_too_large(
    slurm: FakeSlurm, limit: str, settings: tuple[str, ...], said: str
) -> None:
    launcher = "job.launcher=srun"
    site = profile(f"limits:\n  {limit}")
    with pytest.raises(PlanError) as failure:
        study(launcher, *settings, site=site)
    assert failure.value.message.startswith("big.yaml:7: big ")
    assert said in failure.value.message
