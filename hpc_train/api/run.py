"""`hpc_train.submit`, `run` and `study`: runs of one folder, their states, and waiting."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from hpc_train.api.arguments import (
    AnyPath,
    Number,
    checked,
    keyword_request,
    path_of,
    results_of,
    text_of,
    words_of,
)
from hpc_train.api.display import Displayed, ShownText, shown_path
from hpc_train.base.errors import StoreError, SubmitError, WaitTimeoutError
from hpc_train.base.files import read_regular
from hpc_train.base.plain_text import aligned
from hpc_train.runs.expected_runs import missing_runs
from hpc_train.runs.run import JobState, Run
from hpc_train.runs.run_folders import find, is_run
from hpc_train.runs.run_states import Watch, cancel as cancel_runs
from hpc_train.runs.run_table import HEADS, counts, earlier, row, rows, why
from hpc_train.scripts.prepare import prepare
from hpc_train.submissions.follow_logs import RunLogs, one_run
from hpc_train.submissions.submit import submit as submit_prepared

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hpc_train.api.arguments import JobKeys
    from hpc_train.api.diagnose import DiagnosedJobs
    from hpc_train.api.report import ScalingReport


_PAUSE_S = 0.3


class RunStatesOfFolder:
    """Reads the runs of a folder, at most a quarter of the time that their user takes.

    A scheduler is queried as `hpctrain status --watch` queries it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._watch = Watch(folder)
        self._runs: tuple[Run, ...] = ()
        self._read_at: float | None = None

    def runs(self) -> tuple[Run, ...]:
        """Return the runs in their current states.

        Raises:
            StoreError: the folder was removed.
        """
        now = time.monotonic()
        if self._read_at is None or now - self._read_at > self._watch.pause_s(0.0):
            if not self.folder.is_dir():
                raise StoreError(f"{self.folder}: the folder was removed", "hpctrain status")
            self._runs = self._watch.runs()
            self._read_at = time.monotonic()
        return self._runs

    def run(self, run_id: str) -> Run:
        """Return one run in its current state.

        Raises:
            StoreError: its folder was removed.
        """
        found = next((run for run in self.runs() if run.folder.run_id == run_id), None)
        if found is None:
            raise StoreError(f"{self.folder}: the run {run_id} was removed", "hpctrain status")
        return found

    def forget(self) -> None:
        """Query the scheduler at the next call: the runs were changed."""
        self._watch, self._read_at = Watch(self.folder), None

    def wait(
        self,
        selected: Callable[[], Sequence[Run]],
        timeout_s: float | None,
    ) -> None:
        """Return when all selected runs have finished.

        Raises:
            WaitTimeoutError: one has not after `timeout_s` seconds.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            open_runs = [run for run in selected() if not run.state.finished]
            if not open_runs:
                return
            pause = self._watch.pause_s(_PAUSE_S)
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise _too_late(open_runs, timeout_s)
                pause = min(pause, left)
            time.sleep(pause)


def _too_late(open_runs: Sequence[Run], timeout_s: float | None) -> WaitTimeoutError:
    first = open_runs[0]
    more = f" and {len(open_runs) - 1} more" if len(open_runs) > 1 else ""
    state = f"{first.state.value} after {timeout_s:g} s"
    return WaitTimeoutError(
        f"{first.folder.run_id}{more}: {state}; the runs continue",
        "call wait() again, or cancel()",
    )


class SubmittedRuns(Displayed):
    """The runs below a folder; it is a path, that of the folder."""

    def __init__(
        self, folder: Path, states: RunStatesOfFolder | None = None, notices: tuple[str, ...] = ()
    ) -> None:
        self._folder = folder
        self._states = RunStatesOfFolder(folder) if states is None else states
        self._notices = notices

    @property
    def folder(self) -> Path:
        """The folder of the run or study, with all that is known of it."""
        return self._folder

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


_LAST_LINES = 8


class SubmittedRun(SubmittedRuns):
    """A run that was submitted, in this process or in any other one.

    Its properties read the files of the run and, at limited intervals, query its scheduler, so that
    they change while the run proceeds. It is a path: `Path(run)` is the folder of the run.
    """

    @property
    def id(self) -> str:
        """The run id, which the commands also accept."""
        return self._folder.name

    @property
    def runs(self) -> tuple[SubmittedRun, ...]:
        """The run itself, so that a run and a study can be used alike."""
        return (self,)

    @property
    def state(self) -> str:
        """PENDING, RUNNING, SUSPENDED, UNKNOWN or, finally, COMPLETED, FAILED … (docs/commands.md).

        Raises:
            StoreError: the folder of the run was removed.
        """
        return self._states.run(self.id).state.value

    @property
    def finished(self) -> bool:
        """Whether the state is final.

        Raises:
            StoreError: the folder of the run was removed.
        """
        return self._states.run(self.id).state.finished

    @property
    def reason(self) -> str:
        """Why the run failed or still waits, in one sentence; empty if there is nothing to say.

        Raises:
            StoreError: the folder of the run was removed.
        """
        return why(self._states.run(self.id))

    @property
    def details(self) -> dict[str, Any]:
        """The run as in `hpctrain status --json`; times in seconds since the epoch.

        Raises:
            StoreError: the folder of the run was removed.
        """
        return row(self._states.run(self.id))

    @property
    def script(self) -> str:
        """The job script as it was submitted.

        Raises:
            StoreError: the folder of the run was removed.
        """
        file = self._states.run(self.id).folder.script
        try:
            return ShownText(read_regular(file).decode(errors="replace"))
        except OSError as failure:
            raise StoreError(f"{file}: {failure.strerror or failure}") from None

    def logs(self, rank: int | None = None, lines: int | None = None) -> str:
        """Return the logs of all ranks, each below its name, or only that of one rank.

        `lines`: only so many last lines of each log. Bytes that are not UTF-8 are replaced.

        Raises:
            ArgumentError: a negative rank, or fewer than one line.
            StoreError: there is no log, or none yet.
        """
        rank, lines = (
            checked(rank, Annotated[int, msgspec.Meta(ge=0)] | None, "rank"),
            checked(lines, Annotated[int, msgspec.Meta(ge=1)] | None, "lines"),
        )
        logs = RunLogs(str(self._folder), self._folder.parent, rank=rank, lines=lines)
        if logs.empty:
            raise logs.no_log(self.id)
        parts = [(name, content.decode("utf-8", "replace")) for name, content in logs.new_bytes()]
        if rank is not None:
            return ShownText("".join(text for _, text in parts))
        return ShownText("".join(f"==> {name} <==\n{_ended(text)}" for name, text in parts))

    def wait(self, timeout: float | None = None) -> str:
        """Wait until the run has finished, for at most `timeout` seconds; return its final state.

        A failed run raises nothing. Ctrl-C, or the end of this process, leaves the run running.

        Raises:
            ArgumentError: `timeout` is not a number of seconds.
            WaitTimeoutError: the run has not finished; it continues. It is a `TimeoutError`.
        """
        limit = checked(timeout, Number | None, "timeout")
        self._states.wait(lambda: [self._states.run(self.id)], limit)
        return self.state

    def _shown(self) -> str:
        found = self._states.run(self.id)
        facts = dict(zip(HEADS, rows([found])[0], strict=True))
        facts["folder"] = shown_path(self._folder)
        shown = [(name, text) for name, text in facts.items() if text and name != "run"]
        last = self._last_lines(found) if found.state is JobState.FAILED else ""
        title = f"{self.id}: {found.state.value}"
        return "\n\n".join(filter(None, (title, table_text(shown), *self._notices, last)))

    def _last_lines(self, found: Run) -> str:
        """Return the last lines of the rank that failed first, or of the job script."""
        failure = found.status.failure if found.status else None
        rank = failure.rank if failure else None
        with suppress(StoreError):
            return self.logs(rank=rank, lines=_LAST_LINES)
        return ""


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """Return rows with their cells below one another."""
    return "\n".join("  ".join(cells).rstrip() for cells in aligned(rows))


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def run(word: AnyPath, *, results: AnyPath | None = None) -> SubmittedRun:
    """Return a run by its id, the beginning of its id, its folder, or the name of its only job.

    `results` is the folder of all results, by default $HPCTRAIN_RESULTS or ./results.

    Raises:
        ArgumentError: an argument of another type.
        UnknownNameError: nothing has that name; the message lists the nearest names.
        StoreError: the name is that of several runs.
    """
    root = results_of(results)
    folder = one_run(find(root, text_of(word, "word")))
    return SubmittedRun(folder.absolute())


class SubmittedStudy(SubmittedRuns):
    """The runs of a study or of a job that was submitted several times.

    It is a path: `Path(study)` is the folder of the study.
    """

    @property
    def name(self) -> str:
        """The name of the study or job, which the commands also accept."""
        return self._folder.name

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
        self._states.wait(self._last_attempts, limit)
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


def submit(
    file: AnyPath,
    args: Iterable[object] = (),
    *,
    site: AnyPath | None = None,
    results: AnyPath | None = None,
    settings: Mapping[str, Any] | None = None,
    max_gpu_hours: float | None = None,
    rerun_failed: bool = False,
    **keys: Unpack[JobKeys],
) -> SubmittedRun | SubmittedStudy:
    """Submit a job, a study or a script, as `hpctrain submit` does; return without waiting.

    `file` is a job or study in YAML, or a program with its arguments `args`. `site` names a site
    profile or its file. Keywords are keys of a job (`nodes=2`, `time="1h"`, `env={"X": "1"}`);
    `settings` sets any key by its dotted name (`{"env.X": "1", "repetitions": 1}`). None leaves a
    key out. The job starts in the current folder unless the job file has `workdir`.
    A study runs only what is missing, with `rerun_failed` also its failed runs.

    Raises:
        ArgumentError: an argument of a wrong type or value.
        SpecError, PlanError: an unknown key, a wrong value, a job that does not fit the site, or a
            cost above `max_gpu_hours`. Nothing is submitted.
        UnknownNameError, SiteProfileError: no such site, or an error in its profile.
        SubmitError, StoreError: the scheduler refuses; `results` cannot be written.
    """
    path, words = path_of(file, "file"), words_of(args, "args")
    named = None if site is None else text_of(site, "site")
    request = keyword_request(
        path, words, named, keys, checked(settings, dict[str, Any] | None, "settings") or {}
    )
    again = checked(rerun_failed, bool, "rerun_failed")
    most = checked(max_gpu_hours, Number | None, "max_gpu_hours")
    prepared = prepare(msgspec.structs.replace(request, starts=True))
    notices = [*prepared.notices]
    argv = ["hpc_train.submit", str(request.path), *request.arguments]
    done = submit_prepared(
        prepared,
        results_of(results),
        argv,
        notices.append,
        rerun_failed=again,
        max_gpu_hours=most,
    )
    told = (*prepared.warnings, *notices)
    if prepared.study is not None:
        states = RunStatesOfFolder(done.home)
        return SubmittedStudy(done.home, states, told)
    folder = done.new[0].path
    return SubmittedRun(folder, RunStatesOfFolder(folder), told)
