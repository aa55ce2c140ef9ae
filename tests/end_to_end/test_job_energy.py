"""The energy of a job in a report, from a real accounting: without a plug-in, with a value."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpc_train.lab.state_file import Lab
from tests.conftest import Slurm
from tests.end_to_end.user import User, user_of
from tests.pipeline.waiting import wait_for

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

EVENT = '@hpct {"samples_per_second": 10, "global_batch_size": 8, "steps": 500}'
JOB = {
    "name": "metered",
    "command": ["echo", EVENT],
    "launcher": "srun",
    "resources": {
        "nodes": 2, "tasks_per_node": 1, "cpus_per_task": 1, "gpus_per_node": 0, "time": "5m",
    },
}  # fmt: skip
# As slurmctld does for a job with an energy plug-in: TRES 3 is the energy.
CHANGE = (
    "update lab_job_table set tres_alloc = "
    "concat(regexp_replace(tres_alloc, ',3=[0-9]+', ''), ',3=', @energy) where id_job = @job"
)


def test_energy_of_a_job_from_the_accounting(
    accounting_lab: Lab, slurm: Slurm, tmp_path: Path
) -> None:
    user = user_of(accounting_lab, tmp_path)
    done = user.submit(user.write("job.yaml", JOB), "--wait")
    assert done.returncode == 0, done.stderr
    row = user.run("metered")
    (stored,) = (user.folder / "results" / "metered").glob("*/run.json")
    stored = stored.with_name("energy.json")
    # slurmctld hands ended jobs over in batches.
    wait_for(lambda: ended(slurm, row["job"])[:1].isdigit())
    # The lab has no energy plug-in.
    assert point(user)["energy_spent_kwh"] is None
    assert not stored.exists(), "an energy may come late"

    found = point_with_energy(user, accounting_lab, row["job"], 400)
    assert found["energy_spent_kwh"] == pytest.approx(400 / 3.6e6)
    assert found["job_energy_per_sample_j"] == pytest.approx(400 / 4000)
    assert json.loads(stored.read_bytes())["energy_j"] == 400
    meters(accounting_lab, row["job"], 0)
    assert point(user)["energy_spent_kwh"] == pytest.approx(400 / 3.6e6)


def ended(slurm: Slurm, job: str) -> str:
    return slurm("sacct", "-nXP", f"--jobs={job}", "--format=End").strip()


def point(user: User) -> dict[str, Any]:
    """Return the only row of the report, which has no warning of the accounting."""
    done = user.hpctrain("report", "metered", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert "sacct" not in done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    found: dict[str, Any] = row
    return found


def point_with_energy(user: User, lab: Lab, job: str, energy_j: int) -> dict[str, Any]:
    """Record an energy until the report has it: slurmdbd may write the job once more after it."""
    found: dict[str, Any] = {}

    def has_energy() -> bool:
        meters(lab, job, energy_j)
        found.update(point(user))
        return found["energy_spent_kwh"] is not None

    wait_for(has_energy)
    return found


def meters(lab: Lab, job: str, energy_j: int) -> None:
    """Record an energy of a job in the database."""
    change = f"set @job = {job}, @energy = {energy_j}; {CHANGE}"
    socket = f"--socket={lab.settings.folder}/db/socket"
    subprocess.run(["mariadb", socket, "--user=root", "slurm_acct_db", "-e", change], check=True)
