"""A retry leaves out nodes on which other runs of its folder failed."""

from __future__ import annotations

import time

import pytest

from hpc_train.errors import PlanError
from hpc_train.pipeline.retry import RetryOptions, retry
from hpc_train.pipeline.submit import no_output, submit
from tests.pipeline.on_slurm import EXCLUDE, RESULTS, job, says
from tests.submissions.slurm.fake_slurm import FakeSlurm, option


def test_nodes_that_other_runs_report_as_bad_are_excluded(slurm: FakeSlurm) -> None:
    runs = [submit(job(), RESULTS, []).new[0] for _ in range(3)]
    for number, (run, host) in enumerate(zip(runs, ("n7", "n5", "n5"), strict=True), 1):
        failure = {"rank": 0, "host": host, "exit_code": 1}
        says(run, started=time.time(), ended=time.time(), exit_code=1, failure=failure)
        slurm.becomes(f"100{number}", "FAILED", nodes=host, reason="NonZeroExitCode")
    lost = {"rank": 0, "host": "n3", "exit_code": 1, "lost_peer": True}
    for number in (4, 5):
        run = submit(job(), RESULTS, []).new[0]
        says(run, started=time.time(), ended=time.time(), exit_code=1, failure=lost)
        slurm.becomes(f"100{number}", "FAILED", nodes="n[3-4]", reason="NonZeroExitCode")
    retry(runs[0].path, [], no_output, EXCLUDE)
    assert option(slurm.calls("sbatch")[-1], "exclude") == "n5,n7"


def test_a_retry_that_is_refused_prints_nothing_of_nodes(slurm: FakeSlurm) -> None:
    (run,) = submit(job("launcher=srun", "gpus_per_node=2", "time=1h"), RESULTS, []).new
    failure = {"rank": 0, "host": "n7", "exit_code": 1}
    says(run, ended=1001.0, exit_code=1, failure=failure)
    slurm.becomes("1001", "FAILED", nodes="n7", reason="NonZeroExitCode")
    said: list[str] = []
    options = RetryOptions(exclude_failed_nodes=True, max_gpu_hours=1.5)
    with pytest.raises(PlanError, match="--max-gpu-hours"):
        retry(run.path, [], said.append, options)
    assert said == []
