"""Endings in the logs -> whether the job succeeded; evidence of success precedes errors."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from hpc_train.model.diagnosis import DiagnosedOutcome, Evidence, JobEnd, LogFinding
from hpc_train.model.value import Value
from hpc_train.records.diagnosis.end_markers import Ending, EndingKind
from hpc_train.records.diagnosis.root_cause import (
    CAUSE,
    ENDED,
    EXIT,
    RAISED_AGAIN,
    OrderedSighting,
    cause_level,
)

_NO_TARGET = LogFinding(
    id="mlperf_aborted",
    group="python",
    severity="fatal",
    role="root",
    title="The training ended without reaching its target (run_stop: aborted)",
    message="It did not converge in the epochs that it has, or was stopped.",
    advice="Compare hyperparameters and seed with a run that converged; look at the last losses.",
    evidence=(),
)
_WRONG_NUMBERS = LogFinding(
    id="collective_wrong_result",
    group="nccl",
    severity="fatal",
    role="root",
    title="The collective gave wrong numbers",
    message="Memory, a link or a library corrupts data.",
    advice="Test each node by itself (nccl-tests -c 1); look at dmesg for ECC and link errors.",
    evidence=(),
)
# Groups of errors that a program may print at teardown, after its work.
_TEARDOWN: frozenset[str] = frozenset({"slurm", "lsf", "mpi", "torchrun", "c10d", "nccl"})
# Kinds of evidence that work is done, strongest first, each with the mildest failure overriding it.
_MILDEST: Mapping[EndingKind, int] = {
    "success": CAUSE,
    "work": CAUSE,
    "bench": RAISED_AGAIN,
    "part": EXIT,
}
_DOCUMENTS = (".md", ".rst")

Endings = Sequence[tuple[int, Ending]]


class JobOutcome(Value, frozen=True, kw_only=True):
    """How the job ended, and the evidence; `failure` is a failure that the program reports."""

    outcome: DiagnosedOutcome
    why: str
    failure: Ending | None = None
    source: str = ""


def decide(
    endings: Endings, sources: Sequence[str], seen: Sequence[OrderedSighting], end: JobEnd
) -> JobOutcome:
    """Use evidence of success first; errors count without such evidence, or after the work."""
    if end.exit_code == 0 or end.state == "COMPLETED":
        return JobOutcome(outcome="success", why=end.problem or "its script ended with exit code 0")
    if sources and all(source.endswith(_DOCUMENTS) for source in sources):
        return JobOutcome(
            outcome="unknown", why="a document that quotes logs is not the log of a job"
        )
    last = _last(endings)
    # A message of the script after the program does not override that of the program.
    result = [item for item in last if item[1].kind in ("success", "failure")][-1:]
    if any(item[1].kind == "failure" for item in result):
        file, ending = result[-1]
        why = _quoted(result[-1], sources)
        return JobOutcome(outcome="failed", why=why, failure=ending, source=sources[file])
    if last:
        return _after_work(last, sources, seen, end)
    return _without_ending(seen, end)


def _last(endings: Endings) -> list[tuple[int, Ending]]:
    """Drop, for each file, the endings before a restart of the work."""
    kept: list[tuple[int, Ending]] = []
    for file, ending in endings:
        if ending.kind == "restart":
            kept = [item for item in kept if item[0] != file]
        else:
            kept.append((file, ending))
    return kept


def _after_work(
    done: Endings, sources: Sequence[str], seen: Sequence[OrderedSighting], end: JobEnd
) -> JobOutcome:
    kinds = [item[1].kind for item in done]
    best = next(kind for kind in _MILDEST if kind in kinds)
    proof = [item for item in done if item[1].kind == best][-1]
    evidence = _quoted(proof, sources)
    later = [one for one in seen if _breaks(one, best) and not _before(one, proof)]
    if later and (best != "success" or end.exit_code is not None):
        return JobOutcome(
            outcome="failed", why=f"the work was done ({evidence}), but what came after failed"
        )
    code = f"; exit code {end.exit_code} came after" if end.exit_code else ""
    return JobOutcome(outcome="success", why=evidence + code)


def _breaks(seen: OrderedSighting, done: EndingKind) -> bool:
    torn = done in ("success", "work") and seen.signature.group in _TEARDOWN
    return seen.fatal and cause_level(seen) <= _MILDEST[done] and not torn


def _before(seen: OrderedSighting, proof: tuple[int, Ending]) -> bool:
    return seen.file == proof[0] and seen.sighting.line < proof[1].line


def _quoted(item: tuple[int, Ending], sources: Sequence[str]) -> str:
    file, ending = item
    text = textwrap.shorten(ending.text, 120, placeholder=" …")
    return f"{sources[file]}:{ending.line} says: {text}"


def _without_ending(seen: Sequence[OrderedSighting], end: JobEnd) -> JobOutcome:
    fatal = [one for one in seen if one.fatal]
    if any(cause_level(one) < ENDED for one in fatal):
        return JobOutcome(outcome="failed", why="no line shows that the work was done")
    if end.exit_code or end.state in ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"):
        return JobOutcome(outcome="failed", why=end.problem or f"the run is {end.state}")
    if fatal:
        return JobOutcome(outcome="unknown", why="it was ended before its work was done")
    if any(one.survived for one in seen):
        return JobOutcome(
            outcome="unknown",
            why="the work went on after the errors, and no line shows that it was done",
        )
    return JobOutcome(
        outcome="unknown",
        why="the logs show neither a failure nor that the work was done",
    )


def missed_target(ending: Ending, source: str) -> LogFinding:
    """Return the finding of an ending of the kind `failure`."""
    known = _WRONG_NUMBERS if "Out of bounds" in ending.text else _NO_TARGET
    place = Evidence(source=source, line=ending.line, text=ending.text)
    return replace(known, evidence=(place,))
