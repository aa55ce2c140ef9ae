"""submitit's executor and watcher, with the rendered script instead of a pickle.

The overridden methods are private, so submitit's version is pinned in pyproject.toml and each of
them has a test.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# Otherwise importing submitit would add handlers for stdout and stderr, which print twice.
os.environ.setdefault("SUBMITIT_LOG_LEVEL", "NOCONFIG")

from submitit.core import utils
from submitit.slurm import slurm

from hpc_train.base.errors import SubmitError
from hpc_train.base.processes import run
from hpc_train.runs.run import SlurmEndpoint
from hpc_train.slurm.job_states import job_reports

# sbatch itself retries for minutes if the controller is slow (man slurm.conf, MessageTimeout).
_PATIENCE_S = 300.0
_JOB_ID = re.compile(
    r"^(?:Submitted batch job )?([0-9]+)(?:;\S*| on cluster \S+)?\s*$", re.MULTILINE
)


class QueueWatcher(slurm.SlurmInfoWatcher):
    """Queries as `hpctrain status` does: squeue, then sacct if there is accounting."""

    def __init__(self, cluster: SlurmEndpoint) -> None:
        super().__init__(delay_s=int(cluster.poll_s))
        self.cluster = cluster
        self._since = datetime.date.today().isoformat()

    def update(self) -> None:
        """Query all unfinished jobs with one call."""
        waiting = self._registered - self._finished
        if not waiting:
            return
        self._num_calls += 1
        for job, report in job_reports(
            self.cluster, dict.fromkeys(waiting, ""), self._since
        ).items():
            self._info_dict[job] = {
                "JobID": job,
                "State": report.state.value,
                "NodeList": report.nodes,
                "Reason": report.reason,
            }
            if report.state.finished:
                self._finished.add(job)
        self._last_status_check = time.time()

    def is_done(self, job_id: str, mode: str = "standard") -> bool:
        """Whether a job has finished; False if its state is unknown."""
        self.get_state(job_id, mode=mode)
        return job_id in self._finished


class ScriptExecutor(slurm.SlurmExecutor):
    """Submits the script of a run folder, byte for byte."""

    def __init__(
        self,
        folder: Path | str,
        script: Path,
        options: Sequence[str] = (),
        arguments: Sequence[str] = (),
        environment: Mapping[str, str | None] | None = None,
    ) -> None:
        super().__init__(folder)
        self.script = script
        self.options, self.arguments = tuple(options), tuple(arguments)
        self.environment = environment or {}

    def run(self) -> str:
        """Run sbatch with the script, and return the id of the job that it created.

        Raises:
            SubmitError: it refused, or was not answered, with its message. It is `transient` if
            sbatch succeeded and only its output cannot be parsed.
        """
        changed: dict[str, str | None] = {**os.environ, **self.environment}
        environment = {name: value for name, value in changed.items() if value is not None}
        argv = self._make_submission_command(self.script)
        done = run(argv, _PATIENCE_S, environment=environment)
        if done.returncode != 0:
            raise SubmitError(done.stderr.strip() or f"exit code {done.returncode}")
        try:
            return job_id_of(done.stdout)
        except utils.FailedSubmissionError as failure:
            raise SubmitError(str(failure), transient=True) from None

    @classmethod
    def affinity(cls) -> int:
        """Check for sbatch, not for srun, which a login node may lack."""
        return -1 if shutil.which("sbatch") is None else 2

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        script = str(submission_file_path)
        return ["sbatch", "--parsable", *self.options, script, *self.arguments]


def job_id_of(string: bytes | str) -> str:
    """Parse `id`, `id;cluster` or `Submitted batch job id`; a site's wrapper may print other lines.

    Raises:
        submitit.core.utils.FailedSubmissionError: something else.
    """
    text = string if isinstance(string, str) else string.decode(errors="replace")
    match = _JOB_ID.search(text)
    if match is None:
        raise utils.FailedSubmissionError(f"sbatch printed no job id: {text.strip()!r}")
    return match[1]
