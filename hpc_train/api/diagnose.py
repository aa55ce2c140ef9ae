"""Why runs, or the jobs of any logs, failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hpc_train.api.arguments import AnyPath, checked, results_of, texts_of
from hpc_train.api.display import Displayed, ShownText
from hpc_train.diagnosis.diagnose_runs import Diagnosed, diagnose as diagnose_words
from hpc_train.diagnosis.diagnosis import diagnosis_lines, transport_lines

if TYPE_CHECKING:
    from hpc_train.diagnosis.diagnosis import DiagnosedOutcome, LogFinding


class DiagnosedJobs(Displayed):
    """The diagnosis of one or several jobs; the properties describe all of them."""

    def __init__(self, jobs: tuple[Diagnosed, ...]) -> None:
        self._jobs = jobs

    @property
    def jobs(self) -> tuple[Diagnosed, ...]:
        """The name, diagnosis, NCCL transport and unreadable logs of each job."""
        return self._jobs

    @property
    def outcome(self) -> DiagnosedOutcome:
        """`failed` if any job failed, else `unknown` if that of any job is, else `success`."""
        outcomes = {job.diagnosis.outcome for job in self._jobs}
        return min(outcomes, key=("failed", "unknown", "success").index)

    @property
    def root(self) -> LogFinding | None:
        """The root cause of the first job that has one."""
        return next((job.diagnosis.root for job in self._jobs if job.diagnosis.root), None)

    @property
    def findings(self) -> tuple[LogFinding, ...]:
        """All findings; those of a job in the order root, consequences, others."""
        return tuple(finding for job in self._jobs for finding in job.diagnosis.findings)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Logs that cannot be read, with the reason."""
        return tuple(name for job in self._jobs for name in job.unreadable)

    @property
    def text(self) -> str:
        """What `hpctrain diagnose` prints: failure, place, remedy, evidence."""
        lines: list[str] = []
        for job in self._jobs:
            if len(self._jobs) > 1:
                lines += [*[""] * bool(lines), f"== {job.name}"]
            lines += diagnosis_lines(job.diagnosis, benign=False)
            lines += transport_lines(job.transport)
        return ShownText("\n".join(lines))

    def _shown(self) -> str:
        return self.text

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self._jobs)

    def __repr__(self) -> str:
        """Return the class, the names of the jobs and the outcome."""
        names = ", ".join(job.name for job in self._jobs[:3]) + ", …" * (len(self._jobs) > 3)
        return f"<DiagnosedJobs {names}: {self.outcome}>"


def diagnose(
    paths: AnyPath | Iterable[AnyPath],
    *,
    results: AnyPath | None = None,
    one_job: bool = False,
) -> DiagnosedJobs:
    """Return why runs, or the jobs of any log files, failed, as `hpctrain diagnose` does.

    `paths`: one or several runs, studies, or logs. Several logs are several jobs, except the files
    of the ranks of one run; with `one_job` all logs are one job.

    Raises:
        ArgumentError: an argument of a wrong type.
        UnknownNameError: neither a run nor a file.
        StoreError: runs and other logs are mixed. LogParseError: no log can be read.
    """
    words, root = texts_of(paths, "paths"), results_of(results)
    return DiagnosedJobs(diagnose_words(words, root, one_job=checked(one_job, bool, "one_job")))
