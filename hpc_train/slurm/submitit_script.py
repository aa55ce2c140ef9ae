"""submitit's executor, job and watcher, with the rendered script instead of a pickle.

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
from typing import TYPE_CHECKING, Any

# Otherwise importing submitit would add handlers for stdout and stderr, which print twice.
os.environ.setdefault("SUBMITIT_LOG_LEVEL", "NOCONFIG")

from submitit.core import core, utils
from submitit.slurm import slurm

from hpc_train.base.errors import SubmitError
from hpc_train.base.processes import Finished, collect, launch
from hpc_train.runs.run import RunFolder, SlurmEndpoint
from hpc_train.runs.submission_file import status_of
from hpc_train.slurm.job_states import job_reports

if TYPE_CHECKING:
    from subprocess import Popen

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


class ScriptPaths(utils.JobPaths):
    """The files of a run folder under submitit's names."""

    @property
    def folder(self) -> Path:
        """The run folder; a `%j` in its name is not expanded."""
        return self._folder

    @property
    def submission_file(self) -> Path:
        """The script that was submitted."""
        return RunFolder(path=self.folder).script

    @property
    def stdout(self) -> Path:
        """The log of the job script; the ranks have separate logs."""
        return self.folder / "logs" / "job.out"

    @property
    def stderr(self) -> Path:
        """The same file."""
        return self.stdout


class ScriptJob(slurm.SlurmJob[int]):
    """A submitted script; its result is its exit code."""

    watcher = QueueWatcher(SlurmEndpoint())

    def __init__(self, folder: Path | str, job_id: str, tasks: Sequence[int] = (0,)) -> None:
        super().__init__(folder, job_id, tasks)
        self._paths = ScriptPaths(folder, job_id=job_id, task_id=self.task_id)

    def done(self, force_check: bool = False) -> bool:
        """Whether the script ended with 0, or Slurm reports a final state."""
        status = status_of(RunFolder(path=self.paths.folder))
        if status is not None and status.exit_code == 0:
            return True
        return self.watcher.is_done(self.job_id, mode="force" if force_check else "standard")

    def results(self) -> list[int]:
        """Wait for the end and return the exit code.

        Raises:
            submitit.core.utils.UncompletedJobError: it ended without one: lost, cancelled, …
        """
        self.wait()
        status = status_of(RunFolder(path=self.paths.folder))
        if status is None or status.exit_code is None:
            raise utils.UncompletedJobError(
                f"job {self.job_id} ended without an exit code: {self.state}"
            )
        return [status.exit_code]

    def exception(self) -> utils.UncompletedJobError | utils.FailedJobError | None:
        """Wait for the end and return the error, if there is one."""
        try:
            code = self.result()
        except utils.UncompletedJobError as failure:
            return failure
        return utils.FailedJobError(f"job {self.job_id}: exit code {code}") if code else None


class ScriptExecutor(slurm.SlurmExecutor):
    """Submits the script of a run folder, byte for byte."""

    job_class = ScriptJob

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

    def start(self) -> Popen[bytes] | Finished:
        """Start sbatch with the script."""
        argv = self._make_submission_command(self.script)
        return launch(argv, environment=self._environment())

    def job(self, sbatch: Popen[bytes] | Finished) -> ScriptJob:
        """Return the job that sbatch created.

        Raises:
            SubmitError: it refused, or was not answered, with its message. It is `transient` if
            sbatch succeeded and only its output cannot be parsed.
        """
        done = collect(sbatch, _PATIENCE_S)
        if done.returncode != 0:
            raise SubmitError(done.stderr.strip() or f"exit code {done.returncode}")
        try:
            job_id = self._get_job_id_from_submission_command(done.stdout)
        except utils.FailedSubmissionError as failure:
            raise SubmitError(str(failure), transient=True) from None
        return self.job_class(folder=self.folder, job_id=job_id, tasks=(0,))

    def _environment(self) -> dict[str, str]:
        changed: dict[str, str | None] = {**os.environ, **self.environment}
        return {name: value for name, value in changed.items() if value is not None}

    @classmethod
    def affinity(cls) -> int:
        """Check for sbatch, not for srun, which a login node may lack."""
        return -1 if shutil.which("sbatch") is None else 2

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        script = str(submission_file_path)
        return ["sbatch", "--parsable", *self.options, script, *self.arguments]

    @staticmethod
    def _get_job_id_from_submission_command(string: bytes | str) -> str:
        return job_id_of(string)

    def _internal_process_submissions(self, delayed_submissions: list[Any]) -> list[core.Job[Any]]:
        raise NotImplementedError("a ScriptExecutor submits its script; see start")


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
