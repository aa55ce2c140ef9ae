"""submitit's executor and watcher, with a rendered script instead of a pickled function.

The overridden methods are private, so pyproject.toml pins submitit, and each of them has a test.
"""

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

# Otherwise importing submitit would add handlers for stdout and stderr, which print twice.
os.environ.setdefault("SUBMITIT_LOG_LEVEL", "NOCONFIG")

from submitit.core import utils
from submitit.slurm import slurm

from hpc_train.base.errors import SubmitError
from hpc_train.runs.run import SlurmEndpoint
from hpc_train.slurm.job_states import job_reports


class ScriptExecutor(slurm.SlurmExecutor):
    """Submits a script with the command `sbatch`, in place of submitit's own two."""

    sbatch: Sequence[str]

    def _make_submission_file_text(self, command: str, uid: str) -> str:
        return command

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        return list(self.sbatch)


def submit_script(sbatch: Sequence[str], script: str) -> str:
    """Run the command `sbatch` with the text of its script; return the id of the job.

    Raises:
        SubmitError: it refused, or was not answered, with its message. It is `transient` if sbatch
        succeeded and only its output cannot be parsed.
    """
    # submitit leaves files, and prints what sbatch says.
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        executor = ScriptExecutor(folder)
        executor.sbatch = sbatch
        try:
            return str(executor._submit_command(script).job_id)
        except utils.FailedSubmissionError as failure:
            raise SubmitError(str(failure).partition("\n")[0], transient=True) from None
        except utils.FailedJobError as failure:
            raise SubmitError(str(failure) or str(failure.__cause__)) from None


class QueueWatcher(slurm.SlurmInfoWatcher):
    """Queries as `hpctrain status` does: squeue, then sacct if there is accounting."""

    cluster = SlurmEndpoint()
    _since = time.strftime("%Y-%m-%d")

    def update(self) -> None:
        """Query all unfinished jobs with one call."""
        waiting = dict.fromkeys(self._registered - self._finished, "")
        if not waiting:
            return
        self._num_calls += 1
        for job, report in job_reports(self.cluster, waiting, self._since).items():
            found = {"State": report.state.value, "NodeList": report.nodes}
            self._info_dict[job] = {"JobID": job, **found}
            if report.state.finished:
                self._finished.add(job)
        self._last_status_check = time.time()

    def is_done(self, job_id: str, mode: str = "standard") -> bool:
        """Whether a job has finished; False if it is suspended, or its state is unknown."""
        self.get_state(job_id, mode=mode)
        return job_id in self._finished
