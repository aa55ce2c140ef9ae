"""submitit's plug-in `hpctrain`: `AutoExecutor(folder, cluster="hpctrain")`.

Programs that submit Python functions use hpctrain's templates, launchers and site profiles. Pickles
and results stand at submitit's paths; script and logs in the run folder `<folder>/<uid>`, with a
link `<folder>/<job id>` to it.
"""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from submitit.core import core, utils
from submitit.slurm import slurm

from hpc_train.base.data_folders import template_path
from hpc_train.base.errors import SpecError
from hpc_train.jobs.job import JobSpec, Resources
from hpc_train.jobs.override import Override
from hpc_train.jobs.read_job import build_job
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.sample_jobs import is_for_one_node
from hpc_train.runs.run import RunFolder
from hpc_train.runs.run_states import executor_of
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from hpc_train.sites.search import find_profile
from hpc_train.slurm.slurm_commands import as_arguments, environment_changes
from hpc_train.slurm.submitit_script import QueueWatcher
from hpc_train.submissions.submit import cluster_of

_ORIGIN = "update_parameters"
_LEFT_OUT = {"command", "resources", "sites"}
_KEYS = {*JobSpec.__struct_fields__, *Resources.__struct_fields__} - _LEFT_OUT


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

    watcher = QueueWatcher()

    def __init__(self, folder: Path | str, job_id: str, tasks: Sequence[int] = (0,)) -> None:
        super().__init__(folder, job_id, tasks)
        self._paths = FunctionPaths(folder, job_id=job_id, task_id=self.task_id)


class HpctrainExecutor(slurm.SlurmExecutor):
    """Renders a function's job for a site: `hpctrain_site`, or $HPCTRAIN_SITE.

    Its parameters are the keys of a job file, as `hpctrain_launcher`, `hpctrain_account` …, beside
    submitit's shared ones.
    """

    job_class = FunctionJob
    _plan: LaunchPlan

    @classmethod
    def affinity(cls) -> int:
        """Return a low affinity, so that submitit's own executor stays the default."""
        return min(1, super().affinity())

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        return {*_KEYS, "site"}

    @classmethod
    def _equivalence_dict(cls) -> Any:
        """submitit's shared parameters are used unchanged, except those with another unit."""
        return {key: key for key in ("name", "timeout_min", "mem_gb", *Resources.__struct_fields__)}

    def _convert_parameters(self, params: dict[str, Any]) -> dict[str, Any]:
        # Each rank has one log with both streams.
        return {key: value for key, value in params.items() if key != "stderr_to_stdout"}

    def _internal_update_parameters(self, **kwargs: Any) -> None:
        """Set parameters; refuse unknown keys and wrong values, but not yet those of a site.

        Raises:
            SpecError: an unknown key or a wrong value.
        """
        _job({**self.parameters, **kwargs}, ["true"])
        self.parameters.update(kwargs)

    def _internal_process_submissions(self, delayed_submissions: list[Any]) -> list[core.Job[Any]]:
        """Submit one job per function: submitit's array would not use the rendered script.

        The script is rendered first, so that a job that its site refuses leaves no pickle.
        """
        name = self.parameters.get("site") or os.environ.get("HPCTRAIN_SITE")
        if name is None:
            raise SpecError(
                "no site was given",
                'executor.update_parameters(hpctrain_site="…"), or set HPCTRAIN_SITE',
            )
        profile = find_profile(name)
        site = load_site(profile)
        executor_of(site.value.scheduler).refuse(site)
        environment = {**self.parameters.get("env", {}), "SUBMITIT_EXECUTOR": self.name()}
        command = [*shlex.split(self.python), "-u", "-m", "submitit.core._submit", str(self.folder)]
        self._plan = make_plan(_job({**self.parameters, "env": environment}, command), site)
        if self._plan.launch.forks_ranks:
            found = [name for name in site.value.launchers.allowed if not is_for_one_node(name)]
            raise SpecError(
                f"launcher {self._plan.launcher} starts one process per node without RANK; a "
                "function needs one process per rank",
                "executor.update_parameters(hpctrain_launcher=…): "
                f"{', '.join(found) or f'{site.value.name} offers none'}",
            )
        self._script = render_script(self._plan, template_path(profile))
        watcher = FunctionJob.watcher
        watcher.cluster = cluster_of(site.value)
        watcher._delay_s = int(watcher.cluster.poll_s)
        return core.PicklingExecutor._internal_process_submissions(self, delayed_submissions)

    def _make_submission_file_text(self, command: str, uid: str) -> str:
        """Also create the run folder: sbatch opens its log there."""
        run = RunFolder(path=self.folder / uid)
        run.logs.mkdir(parents=True)
        for name, text in ((run.script.name, self._script.text), *self._script.beside):
            (run.path / name).write_text(text, encoding="utf-8")
        return self._script.text

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        uid = submission_file_path.stem.removeprefix(".submission_file_")
        run = RunFolder(path=self.folder / uid)
        output = str(run.logs / "job.out").replace("%", "%%")
        options = dict(self._plan.directives)
        changes = environment_changes(os.environ, FunctionJob.watcher.cluster, options)
        sbatch = ["sbatch", f"--output={output}", "--comment=hpctrain"]
        return [*as_arguments(changes), *sbatch, str(run.script), str(run.path)]

    def _write_job_id(self, job_id: str, uid: str) -> None:
        link = self.folder / job_id
        # Of an earlier Slurm, whose ids were the same.
        link.unlink(missing_ok=True)
        link.symlink_to(uid)

    def _num_tasks(self) -> int:
        return self._plan.topology.world_size


def _job(parameters: dict[str, Any], command: Sequence[str]) -> Any:
    wanted = {key: value for key, value in parameters.items() if key != "site"}
    minutes, gigabytes = wanted.pop("timeout_min", None), wanted.pop("mem_gb", None)
    if minutes is not None:
        wanted["time"] = f"{minutes}m"
    if gigabytes is not None:
        wanted["mem"] = f"{gigabytes}G"
    overrides = [Override(key=k, value=v, origin=_ORIGIN) for k, v in wanted.items()]
    data = {"name": "function", "command": list(command)}
    return build_job(data, {"": _ORIGIN}, overrides, Path("function"))


class HpctrainJobEnvironment(slurm.SlurmJobEnvironment):
    """Inside a job: ranks from torch's variables, which each launcher sets."""

    _env: ClassVar[dict[str, str]] = {
        **slurm.SlurmJobEnvironment._env,
        "global_rank": "RANK",
        "local_rank": "LOCAL_RANK",
        "num_tasks": "WORLD_SIZE",
    }
