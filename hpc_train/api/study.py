"""A study, or all runs of a job: states, waiting, the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hpc_train.api.arguments import AnyPath, Number, checked, results_of, text_of
from hpc_train.api.display import updated_cell
from hpc_train.api.run import SubmittedRun, SubmittedRuns, table_text
from hpc_train.base.errors import StoreError
from hpc_train.runs.expected_runs import missing_runs
from hpc_train.runs.run import Run
from hpc_train.runs.run_folders import find, is_run
from hpc_train.runs.run_table import HEADS, counts, earlier, rows


class SubmittedStudy(SubmittedRuns):
    """The runs of a study or of a job that was submitted several times.

    It is a path: `Path(study)` is the folder of the study.
    """

    @property
    def name(self) -> str:
        """The name of the study or job, which the commands also accept."""
        return self._folder.name

    @property
    def folder(self) -> Path:
        """The folder of the study: study.json and a folder for each run."""
        return self._folder

    @property
    def runs(self) -> tuple[SubmittedRun, ...]:
        """The runs, each in its last attempt, ordered by id.

        Raises:
            StoreError: the folder of the study was removed.
        """
        return tuple(SubmittedRun(run.folder.path, self._states) for run in self._last_attempts())

    @property
    def missing(self) -> tuple[str, ...]:
        """The ids of requested runs that have no folder: `submit` runs them."""
        return missing_runs(self._folder, self._states.runs())

    @property
    def states(self) -> dict[str, int]:
        """The number of runs in each state; MISSING counts those without a folder.

        Raises:
            StoreError: the folder of the study was removed.
        """
        found = Counter(run.state.value for run in self._last_attempts())
        missing = len(self.missing)
        return {**dict(sorted(found.items())), **({"MISSING": missing} if missing else {})}

    @property
    def finished(self) -> bool:
        """Whether every run that was submitted has finished.

        Raises:
            StoreError: the folder of the study was removed.
        """
        return all(run.state.finished for run in self._last_attempts())

    def wait(self, timeout: float | None = None) -> dict[str, int]:
        """Wait until all runs have finished, for at most `timeout` seconds; return `states`.

        Failed runs raise nothing. Ctrl-C, or the end of this process, leaves the runs running.

        Raises:
            ArgumentError: `timeout` is not a number of seconds.
            WaitTimeoutError: some runs have not finished; they continue. It is a `TimeoutError`.
        """
        limit = checked(timeout, Number | None, "timeout")
        self._states.wait(self._last_attempts, limit, updated_cell(self))
        return self.states

    def _last_attempts(self) -> list[Run]:
        runs = self._states.runs()
        retried = earlier(runs)
        return [run for run in runs if run.folder.run_id not in retried]

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._last_attempts())

    def __iter__(self) -> Iterator[SubmittedRun]:
        """Iterate over the runs."""
        return iter(self.runs)

    def _shown(self) -> str:
        runs, missing = self._states.runs(), self.missing
        table = table_text([HEADS, *rows(runs, missing)])
        return "\n\n".join((f"{self.name}: {counts(runs, missing)}", *self._notices, table))


def study(word: AnyPath, *, results: AnyPath | None = None) -> SubmittedStudy:
    """Return a study by its name or folder; the name of a job gives all runs of this job.

    `results` is the folder of all results, by default $HPCTRAIN_RESULTS or ./results.

    Raises:
        ArgumentError: an argument of another type.
        UnknownNameError: nothing has that name; the message lists the nearest names.
        StoreError: the name is that of a single run.
    """
    folder = find(results_of(results), text_of(word, "word")).absolute()
    if is_run(folder):
        raise StoreError(f"{folder.name}: a run, not a study", "hpc_train.run opens a run")
    return SubmittedStudy(folder)
