"""Runs without a result -> new attempts with the same script, from their folders alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from hpc_train.errors import StoreError
from hpc_train.model.run import Manifest, Run, RunName
from hpc_train.model.script import Script
from hpc_train.model.site import SiteProfile
from hpc_train.model.submission import JobState
from hpc_train.model.value import Sourced, Value
from hpc_train.pipeline.cost import check_budget, cost_of
from hpc_train.pipeline.handover import PROFILE, Entry, Submitted, hand_over, terms_of
from hpc_train.pipeline.notices import notices
from hpc_train.pipeline.preflight import check_slurm
from hpc_train.pipeline.query import latest_attempts, runs_below
from hpc_train.pipeline.submit import single_run_id
from hpc_train.runs.files import exclusive
from hpc_train.runs.provenance import provenance
from hpc_train.runs.store import read_study
from hpc_train.sites.load import load_site
from hpc_train.submissions.slurm.nodes import broken_nodes

# In a new run's provenance: the run that it repeats.
_RETRY_OF = "retry_of"


class Again(Value, frozen=True, kw_only=True):
    """What is retried: the last attempt of a run, or a sibling where its folder is gone."""

    model: Run
    repetition: int
    attempt: int


def retry(
    path: Path,
    argv: Sequence[str],
    say: Callable[[str], None],
    *,
    max_gpu_hours: float | None = None,
    exclude_failed_nodes: bool = False,
) -> Submitted:
    """Submit once more what failed, was lost, cancelled or removed below a path.

    With `exclude_failed_nodes`, not on the nodes where a rank failed first, nor on those of a lost
    run that Slurm calls down or drained.

    Raises:
        StoreError: there is nothing to retry, or a run's files are damaged.
        HpcTrainError: what was not submitted is not left on the disk either.
    """
    home = path.parent if (path / "run.json").exists() else path
    with exclusive(home / ".submit.lock"):
        runs = runs_below(path)
        wanted = _wanted(path, home, runs)
        if not wanted:
            raise StoreError(f"{path.name}: nothing to retry; {_states(runs)}")
        facts = provenance(Path(), argv)
        entries = [_entry(again, facts) for again in wanted]
        site = _site_of(entries[0][0])
        if site.value.scheduler != "local":
            check_slurm(site)
        failed = [again.model for again in wanted] if exclude_failed_nodes else None
        exclude = () if failed is None else _failed_nodes(failed, say)
        terms = msgspec.structs.replace(terms_of(site, entries), exclude=exclude)
        for text in _before(site, entries, max_gpu_hours):
            say(text)
        new = hand_over(home, entries, terms)
        if not new:
            raise StoreError(
                f"{path.name}: it was tried again already", f"hpctrain retry {home.name}"
            )
        return Submitted(home=home, new=new)


def _site_of(manifest: Manifest) -> Sourced[SiteProfile]:
    """Load the profile that the run was planned with; by its name where the file has gone."""
    file = str(manifest.provenance.get(PROFILE, ""))
    return load_site(file if file and Path(file).is_file() else manifest.plan.site)


def _before(
    site: Sourced[SiteProfile], entries: Sequence[Entry], max_gpu_hours: float | None
) -> tuple[str, ...]:
    """Return what to tell before a scheduler is asked."""
    cost = cost_of([manifest.plan for manifest, _ in entries])
    check_budget(cost, max_gpu_hours)
    if site.value.scheduler == "local":
        return ()
    return (*notices(site, entries[0][0].plan), f"cost: {cost}")


def _wanted(path: Path, home: Path, runs: Sequence[Run]) -> list[Again]:
    if path != home or read_study(home) is None:
        old = {run.manifest.provenance.get(_RETRY_OF) for run in runs if run.manifest}
        return [
            _single(run) for run in runs if _has_no_result(run) and run.folder.run_id not in old
        ]
    study = read_study(home)
    latest = latest_attempts(runs)
    wanted = []
    for point in study.points if study else ():
        for repetition in range(1, (study.spec.repetitions if study else 0) + 1):
            attempt, run = latest.get(f"{point.stem}-r{repetition}", (0, None))
            if run is not None and not _has_no_result(run):
                continue
            model = run or _sibling(point.stem, runs, home)
            wanted.append(Again(model=model, repetition=repetition, attempt=attempt + 1))
    return wanted


def _single(run: Run) -> Again:
    name = RunName.parse(run.folder.run_id)
    attempt = run.manifest.attempt if run.manifest else 1
    return Again(model=run, repetition=name.repetition if name else 1, attempt=attempt + 1)


def _sibling(stem: str, runs: Sequence[Run], home: Path) -> Run:
    """Return another run of the same point: its plan and script are the same."""
    for run in runs:
        name = RunName.parse(run.folder.run_id)
        if name and name.stem == stem:
            return run
    raise StoreError(
        f"{home}: no run of the point {stem} is left to take the script from",
        "hpctrain submit STUDY.yaml submits what is missing",
    )


def _has_no_result(run: Run) -> bool:
    never = run.state is JobState.UNKNOWN and run.submission is None
    return never or (run.state.finished and run.state is not JobState.COMPLETED)


def _entry(again: Again, facts: dict[str, object]) -> Entry:
    old = again.model.manifest
    if old is None:
        raise StoreError(
            f"{again.model.folder.path}: {again.model.problem}",
            "remove the folder, then submit the study again",
        )
    now = datetime.now(timezone.utc)
    name = RunName.parse(old.run_id)
    run_id = (
        str(RunName(stem=name.stem, repetition=again.repetition, attempt=again.attempt))
        if name
        else single_run_id(now, old.run_id.rpartition("-")[2])
    )
    manifest = msgspec.structs.replace(
        old,
        run_id=run_id,
        repetition=again.repetition,
        attempt=again.attempt,
        created=now.isoformat(timespec="seconds"),
        provenance={**old.provenance, **facts, _RETRY_OF: old.run_id},
    )
    return manifest, _script(again.model, old)


def _script(run: Run, manifest: Manifest) -> Script:
    try:
        text = run.folder.script.read_text(encoding="utf-8")
    except OSError as failure:
        raise StoreError(f"{run.folder.script}: {failure.strerror or failure}") from None
    return Script(
        text=text, digest=manifest.script_digest, template_digest=manifest.template_digest
    )


def _failed_nodes(runs: Sequence[Run], say: Callable[[str], None]) -> tuple[str, ...]:
    """Return the nodes on which a rank failed first, and the broken ones of lost runs."""
    blamed = {
        run.status.failure.host.partition(".")[0]
        for run in runs
        if run.status is not None and run.status.failure is not None
    }
    for run in runs:
        if run.submission is not None and run.state in (JobState.NODE_FAIL, JobState.LOST):
            blamed.update(broken_nodes(run.submission.cluster))
    nodes = tuple(sorted(blamed))
    say(f"without the nodes {', '.join(nodes)}" if nodes else "no node is known to have failed")
    return nodes


def _states(runs: Sequence[Run]) -> str:
    states = sorted({run.state.value for run in runs})
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''} {', '.join(states)}"
