"""Executor `pbs`: run folders -> qsub; qstat and qdel after."""

import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.base.errors import SiteProfileError, SubmitError
from hpc_train.base.processes import notice_if_slow
from hpc_train.pbs.jobs import (
    ENDING,
    MARK,
    call_pbs,
    job_reports,
    marked_jobs,
    message_of,
    transient,
)
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.batch_executor import BatchExecutor, Called, JobCall, MarkedJobs, submit_each
from hpc_train.runs.executor import ExecutorOptions, check_queue_limit
from hpc_train.runs.run import JobReport, RunFolder, SlurmEndpoint
from hpc_train.sites.profile import SourcedSite

# OpenPBS gives a hook of the server 30 s. A later end would let `search` take a job for lost.
_PATIENCE_S = 60.0
_JOB_ID = re.compile(r"^([0-9]+\.[\w.-]+)\s*$", re.MULTILINE)
# Messages about jobs that have ended in the meantime.
_GONE = ("Unknown Job Id", "Job has finished")
# Arguments of one command: Linux allows 2 MiB, and a job id has up to 64 characters.
_AT_ONCE = 5000
# Parts of qsub's messages -> what to do.
_ADVICE = {
    "Unknown queue": "partition names a queue; qstat -Q lists them",
    "Unknown resource": "directives or the profile's pbs.chunk name one that does not exist here",
    "violates queue and/or server resource limits": "request less, or another queue; qstat -Qf",
    "exceed": "wait until your other jobs end",
    "Unauthorized Request": "your account may not use this queue or project",
    "Illegal attribute or resource value": "see the #PBS lines: hpctrain render",
    "project": "account names the project",
    "ccount": "account names the project",
}


class PbsExecutor(BatchExecutor):
    """Submits scripts with qsub; keeps no state and leaves no process."""

    system, command, ends, ping = "PBS", "qsub", "qdel", "qstat -B"

    def refuse(self, site: SourcedSite) -> None:
        """Refuse a host without qsub; see `Executor.refuse`."""
        if not shutil.which("qsub"):
            raise SiteProfileError(
                f"{site.value.name}: qsub is not on PATH, so this is not a login node of a PBS "
                "cluster",
                "load the module of PBS, or add its bin to PATH",
            )

    def ready(
        self, home: Path, plans: Sequence[LaunchPlan], options: ExecutorOptions
    ) -> ExecutorOptions:
        """Refuse too many jobs, nodes to leave out, and a folder's name; see `Executor.ready`."""
        most = options.limits.max_submit_jobs
        check_queue_limit(len(plans), most, "fewer repetitions or points")
        if options.exclude:
            raise SubmitError(
                f"PBS has no option to leave out the nodes {', '.join(options.exclude)}",
                "hpctrain retry without --exclude-failed-nodes; pbsnodes -l lists offline nodes",
            )
        quoted(str(home.absolute()))
        return options

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Submit a job for each run; see `Executor.submit`."""

        def submit(run: RunFolder) -> int:
            folder, mark = str(run.path.absolute()), self.new_mark()
            variables = f"HPCTRAIN_RUN={quoted(folder)},{MARK}={mark}"
            words = ("-o", f"{folder}/logs/job.out", "-v", variables, str(run.script.absolute()))
            command = ("qsub", *words)
            return self.submit_once(
                JobCall(runs=(run,)), options, mark, command, lambda: _qsub(command)
            )

        submit_each(len(runs), runs, submit)

    def jobs_of(self, cluster: SlurmEndpoint, user: str) -> MarkedJobs:
        """Return the jobs of a user, also finished ones."""
        return marked_jobs(user)

    def reports(
        self, cluster: SlurmEndpoint, jobs: Mapping[str, str], since: str
    ) -> dict[str, JobReport]:
        """Return the states of jobs, with one query of each server."""
        by_server: dict[str, list[str]] = defaultdict(list)
        for job in jobs:
            by_server[job.partition(".")[2]].append(job)
        found: dict[str, JobReport] = {}
        for own in by_server.values():
            for part in _parts(own):
                found.update(job_reports(part, self.no_answer))
        return found

    def end(self, cluster: SlurmEndpoint, jobs: Sequence[str]) -> None:
        """Delete jobs."""
        for part in _parts(jobs):
            done = call_pbs("qdel", *part)
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            serious = [line for line in lines if not any(one in line for one in _GONE)]
            if done.returncode != 0 and (serious or not lines):
                denied = "nauthorized" in done.stderr
                hint = "only their owner may delete them" if denied else "try again"
                raise SubmitError(f"qdel: {message_of(done)}", hint)

    def has_left(self, report: JobReport) -> bool:
        """Whether a job has ended or is ending; False if its state is unknown."""
        return report.state.finished or report.reason == ENDING

    def forced_end(self, jobs: Sequence[str]) -> str:
        """Return the command for jobs whose node is lost."""
        return f"try again; if its node is lost: qdel -W force {shlex.join(jobs[:5])}"


def _parts(jobs: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(jobs), _AT_ONCE):
        yield jobs[start : start + _AT_ONCE]


def quoted(folder: str) -> str:
    """Quote a path in the list of -v, where a comma begins the next variable.

    Raises:
        SubmitError: qsub cannot pass it.
    """
    if re.search(r"['\"\\\n]", folder):
        raise SubmitError(
            f"{folder!r}: qsub cannot pass a folder with a quote, a backslash or a line break",
            "--results with another folder",
        )
    return f"'{folder}'" if re.search(r"[^\w./:=+@%~-]", folder) else folder


def _qsub(command: tuple[str, ...]) -> Called:
    """Call qsub, and say so if it waits for the server.

    Raises:
        SubmitError: it was refused.
    """
    with notice_if_slow("qsub", f"; waiting up to {_PATIENCE_S:.0f} s"):
        done = call_pbs(*command, timeout_s=_PATIENCE_S)
    if match := _JOB_ID.search(done.stdout):
        return Called(match[1])
    if done.returncode == 0:
        return Called("", f"it printed no job id: {done.stdout.strip()[:200]!r}", accepted=True)
    message = message_of(done)
    if not transient(done.stderr):
        advice = next((text for words, text in _ADVICE.items() if words in message), "")
        raise SubmitError(f"qsub: {message}", advice)
    return Called("", message)
