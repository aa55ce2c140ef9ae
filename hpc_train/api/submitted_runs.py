"""What one run and the runs of a study have in common: their folder, and what is done with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.api.display import Displayed, shown_path
from hpc_train.api.states import RunStatesOfFolder
from hpc_train.base.errors import SubmitError
from hpc_train.runs.run_states import cancel as cancel_runs

if TYPE_CHECKING:
    from hpc_train.api.diagnose import DiagnosedJobs
    from hpc_train.api.report import ScalingReport


class SubmittedRuns(Displayed):
    """The runs below a folder; it is a path, that of the folder."""

    def __init__(
        self, folder: Path, states: RunStatesOfFolder | None = None, notices: tuple[str, ...] = ()
    ) -> None:
        self._folder = folder
        self._states = RunStatesOfFolder(folder) if states is None else states
        self._notices = notices

    @property
    def notices(self) -> tuple[str, ...]:
        """What `submit` reported: warnings of the plan, notices of the site, the cost."""
        return self._notices

    def cancel(self) -> None:
        """Cancel what has not finished.

        Raises:
            StoreError: all has finished, or a run shares its allocation with others of its study.
            SubmitError: the scheduler refuses, or its answer is unknown.
        """
        done = cancel_runs(self._folder)
        if done.unknown_jobs:
            names = ", ".join(run.folder.run_id for run in done.unknown_jobs)
            problem = done.unknown_jobs[0].problem
            raise SubmitError(
                f"{names}: not cancelled: {problem}", "repeat in a minute", transient=True
            )
        self._states.forget()

    def diagnose(self) -> DiagnosedJobs:
        """Return why each run failed, root cause first.

        Raises:
            LogParseError: none of the logs can be read.
        """
        from hpc_train.api.diagnose import diagnose

        return diagnose(self._folder)

    def report(self) -> ScalingReport:
        """Return the report of the runs; `hpc_train.report(…)` has the options.

        Raises:
            HpcTrainError: as `hpc_train.report`; no measurement, for example.
        """
        from hpc_train.api.report import report

        return report(self._folder)

    def __fspath__(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def __repr__(self) -> str:
        """Return the class and the folder; a state would need a query."""
        return f"{type(self).__name__}({shown_path(self._folder)!r})"
