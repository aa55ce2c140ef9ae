"""Findings of programs that ran to their end and say themselves that it was not good enough."""

from __future__ import annotations

from msgspec.structs import replace

from hpc_train.model.diagnosis import Evidence, Finding
from hpc_train.records.diagnosis.endings import Ending

_NO_TARGET = Finding(
    id="mlperf_aborted",
    group="python",
    severity="fatal",
    role="root",
    title="The training ended without reaching its target (run_stop: aborted)",
    cause="It did not converge in the epochs that it has, or was stopped.",
    advice="Compare hyperparameters and seed with a run that converged; look at the last losses.",
    evidence=(),
)
_WRONG_NUMBERS = Finding(
    id="collective_wrong_result",
    group="nccl",
    severity="fatal",
    role="root",
    title="The collective gave wrong numbers",
    cause="Memory, a link or a library corrupts data.",
    advice="Test each node by itself (nccl-tests -c 1); look at dmesg for ECC and link errors.",
    evidence=(),
)


def missed_target(ending: Ending, source: str) -> Finding:
    """Return the finding of an ending of the kind `failure`."""
    known = _WRONG_NUMBERS if "Out of bounds" in ending.text else _NO_TARGET
    place = Evidence(source=source, line=ending.line, text=ending.text)
    return replace(known, evidence=(place,))
