"""Runs without a result -> new attempts with the same script, from their run folders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from hpc_train.errors import StoreError
from hpc_train.files import exclusive
from hpc_train.model.run import PROFILE, Manifest, Run, RunFolder, RunName
from hpc_train.model.script import Script
from hpc_train.model.study import StudyManifest
from hpc_train.model.submission import JobState
from hpc_train.model.value import Value
from hpc_train.pipeline.run_states import judge, read_runs, runs_below
from hpc_train.pipeline.submit import single_run_id
from hpc_train.pipeline.submit_by_site import (
    hand_over_lots,
    lot_of,
    submission_notices,
    without_failed_nodes,
)
from hpc_train.pipeline.submit_runs import Entry, Submitted
from hpc_train.regularfile import read_regular
from hpc_train.runs.attempts import latest_attempts
from hpc_train.runs.provenance import provenance
from hpc_train.runs.run_folders import is_run, read_study
from hpc_train.runs.run_state import is_untouched, was_never_handed_over

# In a new run's provenance: the run that it repeats.
_RETRY_OF = "retry_of"


class RetryTarget(Value, frozen=True, kw_only=True):
    """A retry, based on a model: the last attempt, or another run of the point if it was removed.

    `repeats` names the attempt before. Of what is `ready` nothing new is made: the model itself is
    handed over, as a command that made its folder was killed before it did.
    """

    model: Run
    repetition: int
    attempt: int
    repeats: str = ""
    ready: bool = False


def retry(
    path: Path,
    argv: Sequence[str],
    say: Callable[[str], None],
    *,
    max_gpu_hours: float | None = None,
    exclude_failed_nodes: bool = False,
) -> Submitted:
    """Resubmit the runs below a path that failed, were lost, cancelled or removed.

    `exclude_failed_nodes` excludes the nodes where a rank failed first, and those of a lost run
    that Slurm reports as down or drained.

    Raises:
        StoreError: there is nothing to retry, or a run's files are damaged.
        HpcTrainError: folders of runs that were not submitted are removed.
    """
    home = path.parent if is_run(path) else path
    with exclusive(home / ".submit.lock"):
        runs = runs_below(path)
        wanted = _wanted(path, home, runs)
        if not wanted:
            raise _nothing_to_retry(path, home, runs)
        facts = provenance(Path(), argv)
        parts = _by_site(wanted)
        lots = [lot_of([_entry(again, facts) for again in part]) for part in parts]
        if exclude_failed_nodes:
            there = runs if path == home else runs_below(home)
            lots = [
                without_failed_nodes(lot, _attempts(part, there), say)
                for lot, part in zip(lots, parts, strict=True)
            ]
        for text in submission_notices(lots, max_gpu_hours):
            say(text)
        ready = [again.model.folder for again in wanted if again.ready]
        new = hand_over_lots(home, lots, say, ready)
        if not new:
            raise _tried_again(path, home)
        return Submitted(home=home, new=new)


def _attempts(part: Sequence[RetryTarget], there: Sequence[Run]) -> list[Run]:
    """Return all attempts at what is to be submitted once more."""
    return [run for again in part for run in attempts(again.model, there)]


def _nothing_to_retry(path: Path, home: Path, runs: Sequence[Run]) -> StoreError:
    if path != home and any(map(_has_no_result, runs)):
        return _tried_again(path, home)
    why = next((run.problem for run in runs if run.state is JobState.UNKNOWN), "")
    return StoreError(f"{path.name}: nothing to retry; {_states(runs)}", why)


def _tried_again(path: Path, home: Path) -> StoreError:
    return StoreError(f"{path.name}: it was retried already", f"hpctrain retry {home.name}")


def _by_site(wanted: Sequence[RetryTarget]) -> list[list[RetryTarget]]:
    """Group runs by site: single jobs of different sites may share a folder."""
    parts: dict[tuple[str, str], list[RetryTarget]] = defaultdict(list)
    for again in wanted:
        manifest = _manifest(again.model)
        parts[str(manifest.provenance.get(PROFILE, "")), manifest.plan.site].append(again)
    return list(parts.values())


def _wanted(path: Path, home: Path, runs: Sequence[Run]) -> list[RetryTarget]:
    study = read_study(home) if path == home else None
    return _singles(home, runs) if study is None else _of_study(study, home, runs)


def _of_study(study: StudyManifest, home: Path, runs: Sequence[Run]) -> list[RetryTarget]:
    latest = latest_attempts(runs)
    wanted = []
    for point in study.points:
        for repetition in range(1, study.spec.repetitions + 1):
            attempt, run = latest.get(f"{point.stem}-r{repetition}", (0, None))
            if run is not None and not _has_no_result(run):
                continue
            if run is not None and run.manifest is not None:
                wanted.append(_again(run))
                continue
            model = _sibling(point.stem, runs, home)
            old = run.folder.run_id if run is not None else ""
            wanted.append(
                RetryTarget(model=model, repetition=repetition, attempt=attempt + 1, repeats=old)
            )
    return wanted


def _singles(home: Path, runs: Sequence[Run]) -> list[RetryTarget]:
    """Return runs without a retry, and retries that were not submitted, in their place."""
    # All runs in the folder: the retry of a single job has another name.
    later = {
        str(run.manifest.provenance.get(_RETRY_OF)): run
        for run in judge(read_runs(home), {})
        if run.manifest is not None
    }
    wanted: dict[RunFolder, RetryTarget] = {}
    for run in filter(_has_no_result, runs):
        last = later.get(run.folder.run_id, run)
        if last is run or is_untouched(last):
            wanted[last.folder] = _again(last)
    return list(wanted.values())


def _again(run: Run) -> RetryTarget:
    name, manifest = RunName.parse(run.folder.run_id), run.manifest
    attempt = name.attempt if name else manifest.attempt if manifest else 1
    return RetryTarget(
        model=run,
        repetition=name.repetition if name else 1,
        attempt=attempt + 1,
        repeats=run.folder.run_id,
        ready=is_untouched(run),
    )


def _sibling(stem: str, runs: Sequence[Run], home: Path) -> Run:
    """Return another run of the same point: its plan and script are the same."""
    for run in runs:
        name = RunName.parse(run.folder.run_id)
        if name and name.stem == stem and run.manifest is not None:
            return run
    raise StoreError(
        f"{home}: no run of the point {stem} to take the script from",
        "hpctrain submit STUDY.yaml submits what is missing",
    )


def attempts(run: Run, there: Sequence[Run]) -> list[Run]:
    """Return a run and those that it repeats, the latest first."""
    by_id = {other.folder.run_id: other for other in there}
    chain = [run]
    while (older := by_id.get(_repeats(chain[-1]))) and older not in chain:
        chain.append(older)
    return chain


def _repeats(run: Run) -> str:
    name = RunName.parse(run.folder.run_id)
    if name and name.attempt > 1:
        return str(msgspec.structs.replace(name, attempt=name.attempt - 1))
    return str(run.manifest.provenance.get(_RETRY_OF, "")) if run.manifest else ""


def _has_no_result(run: Run) -> bool:
    return was_never_handed_over(run) or (
        run.state.finished and run.state is not JobState.COMPLETED
    )


def _manifest(run: Run) -> Manifest:
    if run.manifest is None:
        raise StoreError(
            f"{run.folder.path}: {run.problem}", "remove the folder, then submit the study again"
        )
    return run.manifest


def _entry(again: RetryTarget, facts: dict[str, object]) -> Entry:
    old = _manifest(again.model)
    if again.ready:
        return old, _script(again.model, old)
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
        provenance={**old.provenance, **facts, _RETRY_OF: again.repeats},
    )
    return manifest, _script(again.model, old)


def _script(run: Run, manifest: Manifest) -> Script:
    try:
        text = read_regular(run.folder.script).decode()
    except OSError as failure:
        raise StoreError(f"{run.folder.script}: {failure.strerror or failure}") from None
    except UnicodeDecodeError:
        raise StoreError(f"{run.folder.script}: damaged: not UTF-8 text") from None
    return Script(
        text=text, digest=manifest.script_digest, template_digest=manifest.template_digest
    )


def _states(runs: Sequence[Run]) -> str:
    states = sorted({run.state.value for run in runs})
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''} {', '.join(states)}"
