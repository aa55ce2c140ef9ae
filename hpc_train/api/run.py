"""One run: its state, logs and files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpc_train.api.arguments import AnyPath, count_of, number_of, results_of, text_of
from hpc_train.api.blocks import Block, Rows, Sentences, Title, Verbatim
from hpc_train.api.display import ShownText, shown_path, updated_cell
from hpc_train.api.submitted_runs import SubmittedRuns
from hpc_train.base.errors import StoreError
from hpc_train.base.files import read_regular
from hpc_train.runs.run import Run
from hpc_train.runs.run_states import folder_of
from hpc_train.runs.run_table import HEADS, row, rows, why
from hpc_train.runs.submission import JobState
from hpc_train.submissions.follow_logs import RunLogs, one_run

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
    def folder(self) -> Path:
        """The folder of the run: script, manifest, status, logs, records."""
        return self._folder

    @property
    def runs(self) -> tuple[SubmittedRun, ...]:
        """The run itself, so that a run and a study can be used alike."""
        return (self,)

    @property
    def state(self) -> str:
        """PENDING, RUNNING, SUSPENDED, UNKNOWN or, finally, COMPLETED, FAILED, … (docs/runs.md).

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
        rank, lines = count_of(rank, "rank", 0), count_of(lines, "lines", 1)
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
        limit = number_of(timeout, "timeout")
        update = updated_cell(self)
        self._states.wait(lambda: [self._states.run(self.id)], limit, update)
        return self.state

    def _blocks(self) -> Sequence[Block]:
        found = self._states.run(self.id)
        facts = dict(zip(HEADS, rows([found])[0], strict=True))
        facts["folder"] = shown_path(self._folder)
        shown = [(name, text) for name, text in facts.items() if text and name != "run"]
        blocks: list[Block] = [Title(f"{self.id}: {found.state.value}"), Rows(("", ""), shown)]
        if self._notices:
            blocks.append(Sentences(self._notices, "Notices"))
        if found.state is JobState.FAILED:
            blocks.append(Verbatim(self._last_lines(found)))
        return blocks

    def _last_lines(self, found: Run) -> str:
        """Return the last lines of the rank that failed first, or of the job script."""
        failure = found.status.failure if found.status else None
        rank = failure.rank if failure else None
        with suppress(StoreError):
            return self.logs(rank=rank, lines=_LAST_LINES)
        return ""


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
    folder = one_run(folder_of(text_of(word, "word"), root))
    return SubmittedRun(folder.absolute())
