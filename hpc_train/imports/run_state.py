"""State and exit code of a run in a foreign table -> its state, in the words of Slurm."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpc_train.errors import LogParseError, nearest
from hpc_train.model.expected_study import MISSING
from hpc_train.model.submission import JobState

OK = JobState.COMPLETED.value
_STATES = {
    **{state.value: state.value for state in JobState},
    MISSING: MISSING,
    **dict.fromkeys(
        ("OK", "SUCCESS", "SUCCEEDED", "DONE", "FINISHED", "COMPLETE", "PASSED", "0", "0:0"), OK
    ),
    **dict.fromkeys(("FAIL", "FAILURE", "CRASHED", "ERROR"), JobState.FAILED.value),
    # Weights & Biases and MLflow: a user stopped the run.
    **dict.fromkeys(("KILLED", "STOPPED", "CANCELED"), JobState.CANCELLED.value),
    **dict.fromkeys(("QUEUED", "SCHEDULED"), JobState.PENDING.value),
    "OOM": JobState.OUT_OF_MEMORY.value,
}
_EXIT_CODE = re.compile(r"-?[0-9]{1,10}(?:\.0|:[0-9]{1,3})?")


def run_state(cells: Mapping[str, str], place: str) -> tuple[str, str]:
    """Return state and problem of a run; the exit code decides if no state is given.

    Raises:
        LogParseError: an unknown state, no exit code, or both contradict each other.
    """
    code, problem = cells.get("exit_code", "0"), cells.get("problem", "")
    is_zero = _is_zero(code, place)
    state = _stated(cells["state"], place) if "state" in cells else OK
    if state == OK and not is_zero:
        if "state" in cells:
            raise LogParseError(
                f"{place}: state {cells['state']!r} and exit_code {code!r} contradict each other",
                "correct one of the two cells",
            )
        state = JobState.FAILED.value
    if state == JobState.FAILED.value and not is_zero:
        problem = problem or f"exit code {code}"
    return state, problem


def _is_zero(code: str, place: str) -> bool:
    """Whether an exit code is 0; sacct writes `CODE:SIGNAL`, pandas may write `0.0`."""
    if not _EXIT_CODE.fullmatch(code):
        raise LogParseError(
            f"{place}: exit_code: {code!r} is not an exit code",
            "write a number, or CODE:SIGNAL as sacct does",
        )
    return not re.search("[1-9]", code)


def _stated(text: str, place: str) -> str:
    word = text.upper().split()[0].rstrip("+")
    if word not in _STATES:
        raise LogParseError(
            f"{place}: state: {text!r} is not a state{nearest(word, _STATES)}",
            f"allowed: {', '.join(_STATES)}; empty means ok",
        )
    return _STATES[word]
