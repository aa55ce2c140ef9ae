"""Executor `slurm`: run folders -> sbatch, through submitit; squeue, sacct and scancel after."""

import datetime
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex

from hpc_train.base.errors import SiteProfileError, StoreError, SubmitError
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.batch_executor import BatchExecutor, MarkedJobs, submit_each
from hpc_train.runs.executor import ExecutorOptions, check_queue_limit
from hpc_train.runs.run import JobReport, RunFolder, SlurmEndpoint
from hpc_train.runs.run_states import is_ending
from hpc_train.sites.profile import SourcedSite
from hpc_train.slurm.job_states import job_reports, marked_jobs
from hpc_train.slurm.sbatch import SbatchCall, allocation, batches, call_sbatch
from hpc_train.slurm.slurm_commands import call_slurm, notices

ALLOCATIONS = ".allocations"
# Slurm's default of MaxArraySize (man slurm.conf), if it cannot be queried.
_ARRAY_SIZE = 1001


class SlurmExecutor(BatchExecutor):
    """Submits scripts with sbatch; keeps no state and leaves no process."""

    system, command, ends, ping = "Slurm", "sbatch", "scancel", "scontrol ping"

    def ready(
        self, home: Path, plans: Sequence[LaunchPlan], options: ExecutorOptions
    ) -> ExecutorOptions:
        """Refuse more jobs than the site allows in the queue; see `Executor.ready`."""
        hint = "fewer repetitions or points, or placement: nested, which is one job"
        jobs = 1 if options.allocation else len(plans)
        check_queue_limit(jobs, options.limits.max_submit_jobs, hint)
        return options

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Submit a job or array for each point, or one allocation; see `Executor.submit`."""
        calls = _batches(home, runs, options)
        submit_each(len(runs), calls, lambda call: self._submit(call, options))

    def _submit(self, call: SbatchCall, options: ExecutorOptions) -> int:
        mark = " ".join(filter(None, (self.new_mark(), options.comment)))
        command = call.command(options, mark)
        try:
            return self.submit_once(
                call, options, mark, command, lambda: call_sbatch(call, command, options)
            )
        except SubmitError as failure:
            if call.shared and not failure.transient:
                call.script.unlink(missing_ok=True)
            raise

    def refuse(self, site: SourcedSite) -> None:
        """Refuse a host without sbatch or its slurm.conf; see `Executor.refuse`."""
        name = site.value.name
        if not shutil.which("sbatch"):
            raise SiteProfileError(
                f"{name}: sbatch is not on PATH, so this is not a login node of a Slurm cluster",
                "on Debian: apt-get install slurm-client; without Slurm: --site local",
            )
        given = os.environ.get("SLURM_CONF")
        if given is not None and not Path(given).is_file():
            raise SiteProfileError(f"SLURM_CONF={given}: there is no such file", "unset SLURM_CONF")
        conf = site.value.slurm_conf
        if given is None and conf is not None and not Path(conf).is_file():
            hint = "hpctrain lab up" if name == "lab" else "ask the site, or set SLURM_CONF"
            raise SiteProfileError(f"{site.origin('slurm_conf')}: {conf} does not exist", hint)

    def notices(self, plan: LaunchPlan) -> tuple[str, ...]:
        """Name the variables of this shell that sbatch reads or ignores; see `Executor.notices`."""
        return notices(os.environ, dict(plan.directives))

    def jobs_of(self, cluster: SlurmEndpoint, user: str) -> MarkedJobs:
        """Return the jobs of a user in the queue."""
        return marked_jobs(cluster, user)

    def reports(
        self, cluster: SlurmEndpoint, jobs: Mapping[str, str], since: str
    ) -> dict[str, JobReport]:
        """Return the states of jobs, with one squeue and, for the rest, one sacct."""
        return job_reports(cluster, jobs, since)

    def end(self, cluster: SlurmEndpoint, jobs: Sequence[str]) -> None:
        """Cancel jobs with one scancel."""
        done = call_slurm(cluster, "scancel", *jobs)
        # A job that has just ended is not an error.
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        serious = [line for line in errors if "Invalid job id" not in line]
        if done.returncode != 0 and (serious or not errors):
            message = "; ".join(serious) or f"exit code {done.returncode}"
            hint = "only their owner may cancel them" if "denied" in message else "try again"
            raise SubmitError(f"scancel: {message.removeprefix('scancel: error: ')}", hint)

    def has_left(self, report: JobReport) -> bool:
        """Whether a job has ended or is ending; False if its state is unknown."""
        return report.state.finished or is_ending(report.reason)


def _batches(
    home: Path, runs: Sequence[RunFolder], options: ExecutorOptions
) -> tuple[SbatchCall, ...]:
    if options.allocation is None:
        return batches(runs, _array_size(options) if len(runs) > 1 else 0)
    now = datetime.datetime.now(datetime.timezone.utc)
    script = home / ALLOCATIONS / f"{now:%Y%m%d-%H%M%S}-{token_hex(4)}.sbatch"
    try:
        script.parent.mkdir(exist_ok=True)
        for name, text in ((script.name, options.allocation.text), *options.allocation.beside):
            (script.parent / name).write_text(text, encoding="utf-8")
    except OSError as failure:
        raise StoreError(f"{script}: {failure.strerror}") from None
    return (allocation(home, runs, script, options.allocation.text),)


def _array_size(options: ExecutorOptions) -> int:
    """Return the smaller of the limits of Slurm and the profile."""
    config = call_slurm(options.cluster, "scontrol", "show", "config")
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", config.stdout, re.MULTILINE)
    size = int(match[1]) if match else _ARRAY_SIZE
    most = options.limits.max_array_size
    return size if most is None else min(size, most)
