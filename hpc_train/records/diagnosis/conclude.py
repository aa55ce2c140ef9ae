"""Observations -> Diagnosis: the outcome, the root cause, its consequences, other findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from hpc_train.model.diagnosis import (
    DiagnosedOutcome,
    Diagnosis,
    Evidence,
    JobEnd,
    LogFinding,
    Role,
)
from hpc_train.model.finding import LogSeverity
from hpc_train.records.diagnosis.attempts import Observed
from hpc_train.records.diagnosis.flight_recorder_waits import explain_dumps
from hpc_train.records.diagnosis.hang import explain_hang
from hpc_train.records.diagnosis.job_outcome import decide, missed_target
from hpc_train.records.diagnosis.root_cause import (
    OrderedSighting,
    cause_level,
    choose_root,
    exit_code_of,
    first_of,
    is_first,
    specific,
    tells_end,
    with_times,
)
from hpc_train.records.signatures.base import Sighting
from hpc_train.records.signatures.catalogue import catalogue
from hpc_train.records.signatures.explain import explain

_STATES = {
    "TIMEOUT": "slurm_time_limit",
    "OUT_OF_MEMORY": "slurm_host_oom",
    "NODE_FAIL": "slurm_node_failure",
    "PREEMPTED": "slurm_preempted",
}
# Maximum number of lines shown for one finding.
_SHOWN = 5
_ROLES: dict[Role, int] = {"root": 0, "consequence": 1, "other": 2}
_SEVERITIES: dict[LogSeverity, int] = {"fatal": 0, "warning": 1, "info": 2, "benign": 3}


def conclude(observed: Observed, end: JobEnd) -> Diagnosis:
    """Return the diagnosis of one job; deterministic."""
    seen = [*specific(with_times(observed.seen)), *_by_state(observed, end)]
    verdict = decide(observed.endings, observed.sources, seen, end)
    first_failure = end.first_failure or first_of(seen)
    root = None
    if verdict.outcome != "success":
        root = choose_root([one for one in seen if one.fatal], first_failure)
    findings = _findings(seen, root, verdict.outcome, observed.counts)
    if root is None and verdict.failure is not None:
        findings.append(missed_target(verdict.failure, verdict.source))
    if root is not None and root.signature.id == "nccl_watchdog_timeout":
        findings = [_with_hang(one, observed, _ranks(seen, end)) for one in findings]
    return Diagnosis(
        outcome=verdict.outcome,
        why=verdict.why,
        findings=tuple(sorted(findings, key=_order)),
        first_failure=first_failure if verdict.outcome != "success" else None,
    )


def _by_state(observed: Observed, end: JobEnd) -> Iterator[OrderedSighting]:
    """Yield the end that the scheduler reports, if no log reports it."""
    name = _STATES.get(end.state)
    if name is None or any(one.signature.id == name for one in observed.seen):
        return
    signature = catalogue().by_id[name]
    text = end.problem or f"the state of the run is {end.state}"
    groups = (("what", "The run"), ("job", ""))
    sighting = Sighting(signature=name, source="the scheduler", line=0, text=text, groups=groups)
    yield OrderedSighting(sighting=sighting, signature=signature, file=len(observed.sources))


def _findings(
    seen: Iterable[OrderedSighting],
    root: OrderedSighting | None,
    outcome: DiagnosedOutcome,
    counts: Mapping[str, int],
) -> list[LogFinding]:
    by_id: dict[str, list[OrderedSighting]] = defaultdict(list)
    for one in sorted(seen, key=lambda one: one.survived):
        by_id[one.signature.id].append(one)
    return [_finding(several, root, outcome, counts) for several in by_id.values()]


def _finding(
    several: list[OrderedSighting],
    root: OrderedSighting | None,
    outcome: DiagnosedOutcome,
    counts: Mapping[str, int],
) -> LogFinding:
    role = _role(several[0], root)
    # The title comes from the line of the root cause, else from that of the first failed rank.
    first = next((one for one in several if is_first(one)), several[0])
    chief = root if role == "root" and root is not None else first
    signature = chief.signature
    explanation = explain(signature, chief.sighting)
    alike = [one for one in several if exit_code_of(one) == exit_code_of(chief)]
    shown = _one_of_each_rank([chief, *alike])[:_SHOWN]
    return LogFinding(
        id=signature.id,
        group=signature.group,
        severity=_severity(chief, role, outcome),
        role=role,
        title=explanation.title,
        message=explanation.cause,
        advice=explanation.advice,
        evidence=tuple(map(_evidence, shown)),
        count=max(len(several), counts.get(signature.id, 0)),
    )


def _severity(chief: OrderedSighting, role: Role, outcome: DiagnosedOutcome) -> LogSeverity:
    """Return the severity in this job: survived errors and errors at teardown are benign."""
    signature = chief.signature
    if chief.survived and signature.severity == "fatal":
        return "benign" if outcome == "success" else "info"
    if outcome == "success" and (signature.severity == "fatal" or role == "consequence"):
        return "benign"
    # A job that was stopped from outside did not fail.
    stopped = outcome == "unknown" and signature.severity == "fatal"
    return "info" if stopped else signature.severity


def _one_of_each_rank(several: Iterable[OrderedSighting]) -> list[OrderedSighting]:
    first: dict[tuple[int | None, str], OrderedSighting] = {}
    for one in several:
        first.setdefault((one.sighting.rank, one.sighting.source), one)
    return list(first.values())


def _role(first: OrderedSighting, root: OrderedSighting | None) -> Role:
    if root is not None and first.signature.id == root.signature.id:
        return "root"
    signature = first.signature
    if signature.severity == "benign":
        return "other"
    if signature.role == "consequence":
        return "consequence"
    if root is None or not first.fatal:
        return "other"
    follows = cause_level(first) > cause_level(root) or tells_end(first) or _after(first, root)
    return "consequence" if follows else "other"


def _after(one: OrderedSighting, root: OrderedSighting) -> bool:
    if one.when and root.when and one.when != root.when:
        return one.when > root.when
    return one.file != root.file or one.place > root.place


def _evidence(seen: OrderedSighting) -> Evidence:
    sighting = seen.sighting
    groups = dict(sighting.groups)
    frame = {"file", "line"} <= groups.keys()
    return Evidence(
        source=sighting.source,
        line=sighting.line,
        text=sighting.text,
        rank=sighting.rank,
        node=sighting.node,
        time=sighting.time,
        raised_at=f"{groups['file']}:{groups['line']}" if frame else None,
        called_from=groups.get("caller"),
    )


def _with_hang(finding: LogFinding, observed: Observed, ranks: int | None) -> LogFinding:
    if finding.role != "root":
        return finding
    hang, evidence = explain_dumps(observed.dumps, ranks)
    if hang is None:
        hang = explain_hang(observed.waits, observed.progress, ranks)
    if hang is None:
        return finding
    return replace(
        finding,
        title=hang.title,
        message=hang.cause,
        advice=hang.advice,
        evidence=(*finding.evidence, *evidence),
    )


def _ranks(seen: Sequence[OrderedSighting], end: JobEnd) -> int | None:
    """Return the number of ranks of the job, or a lower limit."""
    if end.ranks is not None:
        return end.ranks
    known = [one.sighting.rank for one in seen if one.sighting.rank is not None]
    return max(known) + 1 if known else None


def _order(finding: LogFinding) -> tuple[int, int]:
    return _ROLES[finding.role], _SEVERITIES[finding.severity]
