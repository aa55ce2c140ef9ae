"""The record of the first failure: made by one rank, removed by none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script

Plans = Callable[..., LaunchPlan]


def wrapped(plan: LaunchPlan, folder: Path, code: int) -> None:
    """Run the wrapper of a rank that ends with a code."""
    text = render_script(plan).text
    wrapper = text.partition("<<'WRAPPER'\n")[2].partition("\nWRAPPER\n")[0]
    (folder / "logs").mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HPCTRAIN_RUN": str(folder),
        "HPCTRAIN_LOG_DIR": str(folder / "logs"),
        "HPCTRAIN_FAILURE_FILE": str(folder / "first_failure"),
        "HOSTNAME": "n1",
        **dict.fromkeys(("SLURM_PROCID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK"), "0"),
        **dict.fromkeys(("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"), "2"),
        **{f"OMPI_COMM_WORLD_LOCAL_{name}": "0" for name in ("RANK", "SIZE")},
    }
    argv = ["bash", "-c", wrapper, "rank", "bash", "-c", f"exit {code}"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.fixture(params=["srun", "mpirun"])
def restarted(request: pytest.FixtureRequest, plan: Plans) -> LaunchPlan:
    resources = {"tasks_per_node": 2, "cpus_per_task": 1, "time": "5m"}
    return plan(
        "slurm-generic",
        launcher=request.param,
        command=["true"],
        resources=resources,
        lifecycle={"requeue_on": [1, 75, 85]},
    )


def test_of_two_ranks_that_fail_at_once_none_removes_the_record_of_the_other(
    restarted: LaunchPlan, tmp_path: Path
) -> None:
    """A rank that asks for another start comes while another one has made the file."""
    record = tmp_path / "first_failure"
    with record.open("x") as file:
        wrapped(restarted, tmp_path, 75)
        file.write("1 n2 1 1795811278.6\n")
    assert record.read_text() == "1 n2 1 1795811278.6\n"
    assert not (tmp_path / "first_failure.log").exists()


@pytest.mark.parametrize(("code", "recorded"), [(1, False), (143, False), (75, True), (85, True)])
def test_after_a_signal_to_the_job_only_ranks_that_ask_for_another_start_count(
    restarted: LaunchPlan, tmp_path: Path, code: int, recorded: bool
) -> None:
    (tmp_path / "first_failure.signal").touch()
    wrapped(restarted, tmp_path, code)
    record = tmp_path / "first_failure"
    assert record.exists() == recorded
    # A later failure changes nothing.
    before = record.read_text() if recorded else None
    wrapped(restarted, tmp_path, 75)
    assert before in (None, record.read_text())
    assert record.read_text().split()[1:3] == ["n1", str(code if recorded else 75)]
