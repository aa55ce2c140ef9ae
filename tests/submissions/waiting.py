"""Wait for what runs in the background, with a limit that a busy machine does not reach."""

import time
from collections.abc import Callable
from pathlib import Path

from hpc_train.runs.run import Run
from hpc_train.runs.run_states import runs_below

LIMIT_S = 400.0


# A wait in vain ends after so long: what has ended may still be queued again. It is asked for less
# often than what is waited for, because it may start a program [s].
_SURE_S, _ASKED_EVERY_S = 3.0, 1.0


def finished(home: Path, within_s: float = LIMIT_S) -> dict[str, Run]:
    """Wait until nothing below a folder runs any more."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        runs = runs_below(home)
        if runs and all(run.state.finished for run in runs):
            return {run.folder.run_id: run for run in runs}
        time.sleep(0.05)
    raise AssertionError(f"not finished: {[(r.folder.run_id, r.state) for r in runs_below(home)]}")


def wait_for(
    condition: Callable[[], bool],
    within_s: float = LIMIT_S,
    every_s: float = 0.05,
    in_vain: Callable[[], str] = lambda: "",
) -> None:
    """Wait until something is true, and stays so until it was looked at.

    A look that starts a program costs more than a pause: the pauses are twice as long, up to 1 s,
    so that what is waited for has the processor. `in_vain` says why it cannot become true any more:
    that ends the wait, unless it is only so for a moment.
    """
    began = time.monotonic()
    deadline = began + within_s
    asked, since = began, None
    while not condition():
        looked = time.monotonic()
        if looked - asked > _ASKED_EVERY_S:
            asked, why = looked, in_vain()
            since = (since or looked) if why else None
            assert since is None or looked - since < _SURE_S, why
        assert looked < deadline, "it did not happen"
        time.sleep(max(min(2 * (looked - began), 1), every_s))
        began = time.monotonic()


def ended(pid: str) -> bool:
    """Return whether a process has ended; where nothing collects orphans, it stays a zombie."""
    try:
        state = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"
