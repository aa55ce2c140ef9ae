"""The interface of executors, and the options of a submission."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hpc_train.base.errors import SubmitError
from hpc_train.base.processes import exchange
from hpc_train.base.values import Value
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.run import JobReport, RunFolder, Script, SlurmEndpoint, Submission
from hpc_train.sites.profile import Limits, SourcedSite


class ExecutorOptions(Value, frozen=True, kw_only=True):
    """Options of a submission: target, limits, excluded nodes.

    `comment` is the user's comment, for all runs. With an `allocation`, its script is submitted and
    runs them all, one after the other. `site` is the profile that the runs were planned with.
    The hosts `apart` are used only for runs on one host.
    """

    cluster: SlurmEndpoint = SlurmEndpoint()
    limits: Limits = Limits()
    exclude: tuple[str, ...] = ()
    comment: str = ""
    allocation: Script | None = None
    site: SourcedSite | None = None
    apart: tuple[str, ...] = ()


class Executor(Protocol):
    """What a scheduler does outside a job; `BatchSystem` is what it gives inside. Keeps no state.

    Executors derive from it: what does not have to be there has a default.
    """

    def refuse(self, site: SourcedSite) -> None:
        """Check whether this host can submit for a site, before anything is written.

        Raises:
            SiteProfileError: with the reason, such as a command that does not exist.
        """
        return None

    def notices(self, plan: LaunchPlan) -> tuple[str, ...]:
        """Return what a user should know of this shell before a job is submitted."""
        return ()

    def ready(
        self, home: Path, plans: Sequence[LaunchPlan], options: ExecutorOptions
    ) -> ExecutorOptions:
        """Check that runs below `home` can be submitted now, before anything is printed or written.

        `plans` has one for each run. Return the options with what was found.

        Raises:
            SubmitError, HostsError: they cannot, with the reason.
        """
        return options

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Submit runs, in order, and write the submission.json of each.

        Raises:
            SubmitError: refused. A run without submission.json was not submitted.
        """

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """Return the state of runs of any jobs and studies, with a single query.

        A run that is not in the result has ended, and its files contain its state.
        """

    def fetch_logs(self, runs: Mapping[RunFolder, Submission]) -> None:
        """Write the new lines of running jobs to the logs of runs that jobs cannot write to.

        Raises:
            SubmitError: the scheduler refuses.
        """
        return None

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """End runs, queued or running, and record that they were cancelled.

        Raises:
            SubmitError: they cannot be ended.
        """


def check_queue_limit(jobs: int, most: int | None, hint: str) -> None:
    """Check the number of jobs that a site allows in its queue.

    Raises:
        SubmitError: there are more.
    """
    if most is not None and jobs > most:
        raise SubmitError(f"{jobs} jobs, but the site allows {most} in the queue at once", hint)


# Neither sources nor needed where a job runs.
_LEFT_OUT = {
    *(".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "node_modules"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints"),
}
_GIT_S = 60.0


def working_files(folder: Path, results: Path) -> list[str]:
    """Return the files of a working folder, relative to it, without those below `results`.

    In a repository, they are those that git tracks or would add; elsewhere all but environments.
    """
    folder, results = folder.resolve(), results.resolve()
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    done = exchange(("git", "-C", str(folder), *words), b"", _GIT_S)
    if done.returncode == 0:
        names = {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
    else:
        names = set()
        for place, folders, files in os.walk(folder):
            folders[:] = [
                name
                for name in folders
                if name not in _LEFT_OUT and not Path(place, name, "pyvenv.cfg").exists()
            ]
            names.update(os.path.relpath(f"{place}/{name}", folder) for name in files)
    paths = {name: folder / name for name in sorted(names)}
    return [
        name
        for name, path in paths.items()
        if (path.is_symlink() or path.is_file()) and results not in path.parents
    ]
