"""The states of the runs in one folder, shared by the objects of these runs, and waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hpc_train.base.errors import StoreError, WaitTimeoutError
from hpc_train.runs.run import Run
from hpc_train.runs.run_states import Watch

_PAUSE_S = 0.3


class RunStatesOfFolder:
    """Reads the runs of a folder, at most a quarter of the time that their user takes.

    A scheduler is queried as `hpctrain status --watch` queries it.
    """

    def __init__(self, folder: Path, *, just_submitted: bool = False) -> None:
        self.folder = folder
        self._watch = Watch(folder, just_submitted=just_submitted)
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
        update: Callable[[], None],
    ) -> None:
        """Return when all selected runs have finished; `update` is called after each reading.

        Raises:
            WaitTimeoutError: one has not after `timeout_s` seconds.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            open_runs = [run for run in selected() if not run.state.finished]
            update()
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
