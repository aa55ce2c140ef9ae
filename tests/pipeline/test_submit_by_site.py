"""Once more on the site that a run was planned for, whatever lies next to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import SubmitError
from hpc_train.json_files import read_json
from hpc_train.model.run import Manifest
from hpc_train.model.submission import JobState
from hpc_train.pipeline.retry import retry
from hpc_train.pipeline.submit import no_output, submit
from tests.pipeline.on_slurm import EXCLUDE, RESULTS, job, profile, study, submission
from tests.pipeline.waiting import finished
from tests.submissions.slurm.fake_slurm import FakeSlurm, option


def test_the_profile_still_counts_in_another_folder(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = profile("limits: {max_array_running: 1}")
    done = submit(study(site=site), RESULTS.absolute(), [])
    for job_id in ("1001_1", "1001_2"):
        slurm.becomes(job_id, "FAILED", nodes="n1")
    monkeypatch.chdir("/")
    retry(done.home, [], no_output)
    assert option(slurm.calls("sbatch")[2], "array") == "1,2%1"


def failed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a job that failed on this machine."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    home = submit(job('command=["sh", "-c", "exit 3"]', site="local"), RESULTS, []).home
    finished(home)
    return home


@pytest.mark.process
def test_on_this_machine_nothing_is_said_of_the_cost(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = failed_here(tmp_path, monkeypatch)
    said: list[str] = []
    retry(home, [], said.append)
    assert [run.state for run in finished(home).values()] == [JobState.FAILED] * 2
    assert said == []
    assert slurm.calls("sbatch") == []


@pytest.mark.process
def test_each_run_goes_back_to_the_site_it_was_planned_for(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (here,) = submit(job('command=["sh", "-c", "exit 3"]', site="local"), RESULTS, []).new
    home = here.path.parent
    finished(home)
    (there,) = submit(job("launcher=srun", "gpus_per_node=1", "time=1h"), RESULTS, []).new
    slurm.becomes("1001", "FAILED", nodes="n1")
    said: list[str] = []
    new = retry(home, [], said.append).new
    executors = {
        str(read_json(run.manifest, Manifest).provenance["retry_of"]): submission(run).executor
        for run in new
    }
    assert executors == {here.run_id: "local", there.run_id: "slurm"}
    assert len(slurm.calls("sbatch")) == 2
    assert said == ["cost at slurm-generic: 1 run: at most 1 GPU-hours, 1 core-hours"]
    slurm.becomes("1002", "FAILED", nodes="n1")
    finished(home)


@pytest.mark.process
def test_what_was_submitted_before_another_site_refuses_is_said(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    home = submit(job('command=["sh", "-c", "exit 3"]', site="local"), RESULTS, []).home
    finished(home)
    submit(job(), RESULTS, [])
    slurm.becomes("1001", "FAILED", nodes="n1")
    slurm.on("sbatch", "echo 'sbatch: error: no' >&2; exit 1")
    said: list[str] = []
    with pytest.raises(SubmitError, match="sbatch: no"):
        retry(home, [], said.append)
    assert said[-1] == "1 of 2 runs were submitted, to other sites"
    assert len(finished(home)) == 3


@pytest.mark.process
def test_the_one_node_of_this_machine_is_used_again(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = failed_here(tmp_path, monkeypatch)
    said: list[str] = []
    (again,) = retry(home, [], said.append, EXCLUDE).new
    assert said[0] == "local is one node, which is used again"
    assert again.manifest.exists()
    finished(home)
