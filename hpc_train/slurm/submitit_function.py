"""Python functions submitted through submitit's interface, in scripts of hpctrain.

A subclass renders the script. This module adapts submitit, its pickles and its results to the run
folders of the scripts: `<folder>/<uid>`, with a link `<folder>/<job id>` to it.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from submitit.core import core, utils
from submitit.slurm import slurm

from hpc_train.base.value import Value
from hpc_train.runs.run import RunFolder, Script, SlurmEndpoint
from hpc_train.slurm.slurm_commands import as_arguments, environment_changes
from hpc_train.slurm.submitit_script import QueueWatcher, job_id_of


class Rendered(Value, frozen=True, kw_only=True):
    """The script of a function, its number of ranks, and further options of sbatch."""

    script: Script
    world_size: int
    cluster: SlurmEndpoint
    options: tuple[str, ...]


class FunctionPaths(utils.JobPaths):
    """Pickles at submitit's paths; logs in the run folder, one per rank."""

    @property
    def stdout(self) -> Path:
        """The log of a rank."""
        return self.folder / str(self.job_id) / "logs" / f"rank-{self.task_id}.out"

    @property
    def stderr(self) -> Path:
        """The log of the job script, which contains the launcher's errors."""
        return self.folder / str(self.job_id) / "logs" / "job.out"


class FunctionJob(slurm.SlurmJob[Any]):
    """A submitted function; its results are the return values of the ranks."""

    watcher = QueueWatcher(SlurmEndpoint())

    def __init__(self, folder: Path | str, job_id: str, tasks: Sequence[int] = (0,)) -> None:
        super().__init__(folder, job_id, tasks)
        self._paths = FunctionPaths(folder, job_id=job_id, task_id=self.task_id)


class Pickled:
    """A function before submission, with the path of its pickle."""

    def __init__(self, delayed: utils.DelayedSubmission) -> None:
        self._delayed = delayed
        self._path: Path | None = None

    def set_timeout(self, timeout_min: int, max_num_timeout: int) -> None:
        """Set the timeout."""
        self._delayed.set_timeout(timeout_min, max_num_timeout)

    def dump(self, filepath: Path) -> None:
        """Write the function itself."""
        self._path = filepath
        self._delayed.dump(filepath)

    def remove(self) -> None:
        """Remove the pickle, unless a job uses it."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class FunctionExecutor(slurm.SlurmExecutor):
    """Submits pickled functions; `_render` returns the script."""

    job_class = FunctionJob

    def __init__(self, folder: Path | str, max_num_timeout: int = 3, python: str | None = None):
        super().__init__(folder, max_num_timeout=max_num_timeout, python=python)
        # submitit waits 0.2 s between two jobs, which sbatch does not need.
        self._throttling = 0.0
        self._world_size = 1
        self._uid = ""

    @classmethod
    def affinity(cls) -> int:
        """Return a low affinity, so that submitit's own executor stays the default."""
        return min(1, super().affinity())

    def _render(self, command: Sequence[str]) -> Rendered:
        raise NotImplementedError

    def _make_submission_file_text(self, command: str, uid: str) -> str:
        """Also create the run folder: sbatch opens its log there."""
        self._uid = uid
        run = RunFolder(path=self.folder / uid)
        run.logs.mkdir(parents=True)
        run.script.write_text(self._rendered.script.text, encoding="utf-8")
        for name, content in self._rendered.script.beside:
            (run.path / name).write_text(content, encoding="utf-8")
        return self._rendered.script.text

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        run = RunFolder(
            path=self.folder / submission_file_path.stem.removeprefix(".submission_file_")
        )
        output = str(run.logs / "job.out").replace("%", "%%")
        changes = environment_changes(os.environ, self._rendered.cluster, self._rendered.options)
        sbatch = ["sbatch", "--parsable", f"--output={output}", "--comment=hpctrain"]
        return [*as_arguments(changes), *sbatch, str(run.script), str(run.path)]

    @staticmethod
    def _get_job_id_from_submission_command(string: bytes | str) -> str:
        return job_id_of(string)

    def _submit_command(self, command: str) -> core.Job[Any]:
        """Remove the files of a function that sbatch refuses."""
        try:
            return super()._submit_command(command)
        except utils.FailedJobError:
            shutil.rmtree(self.folder / self._uid)
            (self.folder / f".submission_file_{self._uid}.sh").unlink()
            raise

    def _write_job_id(self, job_id: str, uid: str) -> None:
        """Replace the files of an older job with this id: ids start again after a new installation.

        Its results would be mistaken for those of this job, which has none yet.
        """
        for rank in range(self._world_size):
            paths = FunctionPaths(self.folder, job_id=job_id, task_id=rank)
            paths.result_pickle.unlink(missing_ok=True)
        link = self.folder / job_id
        link.unlink(missing_ok=True)
        link.symlink_to(uid)

    def _num_tasks(self) -> int:
        return self._world_size

    def _internal_process_submissions(self, delayed_submissions: list[Any]) -> list[core.Job[Any]]:
        """Submit one job per function: submitit's array would not use the rendered script.

        The script is rendered first, so that a job that its site refuses leaves no pickle.
        """
        argv = [*shlex.split(self.python), "-u", "-m", "submitit.core._submit", str(self.folder)]
        self._rendered = self._render(argv)
        self._world_size = self._rendered.world_size
        watcher = type(self).job_class.watcher
        watcher.cluster = self._rendered.cluster
        watcher._delay_s = int(watcher.cluster.poll_s)
        pickled: list[Any] = [Pickled(delayed) for delayed in delayed_submissions]
        try:
            return core.PicklingExecutor._internal_process_submissions(self, pickled)
        except utils.FailedJobError:
            for one in pickled:
                one.remove()
            raise


class FunctionEnvironment(slurm.SlurmJobEnvironment):
    """Inside the job: ranks from torch's variables, which each launcher sets."""

    _env: ClassVar[dict[str, str]] = {
        **slurm.SlurmJobEnvironment._env,
        "global_rank": "RANK",
        "local_rank": "LOCAL_RANK",
        "num_tasks": "WORLD_SIZE",
    }
