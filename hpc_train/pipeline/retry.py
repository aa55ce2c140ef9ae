"""Runs without a result -> new attempts, from their run folders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from hpc_train.errors import StoreError
from hpc_train.json_files import exclusive
from hpc_train.model.run import PROFILE, RETRY_OF, Run, RunFolder, RunName
from hpc_train.model.study import StudyManifest
from hpc_train.model.submission import JobState
from hpc_train.model.value import Value
from hpc_train.pipeline.failure_causes import explain
from hpc_train.pipeline.retry_entry import RetryTarget, manifest_of, retry_entry
from hpc_train.pipeline.run_states import combine, read_runs, runs_below
from hpc_train.pipeline.submit_by_site import (
    SiteBatch,
    batch_of,
    ready_batches,
    submission_notices,
    submit_batches,
    without_failed_nodes,
)
from hpc_train.pipeline.submit_runs import Submitted
from hpc_train.runs.expected_runs import latest_attempts
from hpc_train.runs.provenance import provenance
from hpc_train.runs.run_folders import is_run, read_study
from hpc_train.runs.run_state_and_reason import is_untouched, never_submitted


class RetryOptions(Value, frozen=True, kw_only=True):
    """Options of a retry; `settings` are those of `--set`."""

    max_gpu_hours: float | None = None
    exclude_failed_nodes: bool = False
    settings: tuple[str, ...] = ()


DEFAULT_OPTIONS = RetryOptions()


def retry(
    path: Path,
    argv: Sequence[str],
    say: Callable[[str], None],
    options: RetryOptions = DEFAULT_OPTIONS,
) -> Submitted:
    """Resubmit the runs below a path that failed, were lost, cancelled or removed.

    Settings change the job of a run outside a study, which is then checked as that of a submission.
    `exclude_failed_nodes` excludes the nodes where a rank failed first, those of a lost run that
    Slurm reports as down or drained, and nodes that other runs below the path report as bad.

    Raises:
        StoreError: there is nothing to retry, or a run's files are damaged.
        HpcTrainError: folders of runs that were not submitted are removed; a setting is wrong.
    """
    home = path.parent if is_run(path) else path
    with exclusive(home / ".submit.lock", say):
        runs = runs_below(path)
        targets = _targets(path, home, runs)
        for run in runs:
            if run.newer:
                say(f"{run.folder.run_id} is not retried: {run.problem}")
        if not targets:
            raise _nothing_to_retry(path, home, runs)
        all_runs = runs if path == home or not options.exclude_failed_nodes else runs_below(home)
        notices: list[str] = []
        planned = _batches(targets, all_runs, provenance(Path(), argv), options, notices.append)
        batches = ready_batches(home, planned)
        for text in (*notices, *submission_notices(batches, options.max_gpu_hours)):
            say(text)
        explain([target.model for target in targets if target.repeats], home, say)
        ready = [one.model.folder for one in targets if one.ready and not options.settings]
        new = submit_batches(home, batches, say, ready)
        if not new:
            raise _already_retried(path, home)
        return Submitted(home=home, new=new)


def _batches(
    targets: Sequence[RetryTarget],
    all_runs: Sequence[Run],
    facts: dict[str, object],
    options: RetryOptions,
    say: Callable[[str], None],
) -> list[SiteBatch]:
    """Plan the new attempts, site by site."""
    batches = []
    for group in _by_site(targets):
        batch = batch_of([retry_entry(one, facts, options.settings, say) for one in group])
        if options.exclude_failed_nodes:
            batch = without_failed_nodes(batch, _attempts(group, all_runs), say, all_runs)
        batches.append(batch)
    return batches


def _attempts(group: Sequence[RetryTarget], all_runs: Sequence[Run]) -> list[Run]:
    """Return all attempts of the runs that are submitted again."""
    return [run for target in group for run in attempts(target.model, all_runs)]


def _nothing_to_retry(path: Path, home: Path, runs: Sequence[Run]) -> StoreError:
    if path != home and any(map(_has_no_result, runs)):
        return _already_retried(path, home)
    why = next((run.problem for run in runs if run.state is JobState.UNKNOWN), "")
    return StoreError(f"{path.name}: nothing to retry; {_states(runs)}", why)


def _already_retried(path: Path, home: Path) -> StoreError:
    return StoreError(f"{path.name}: it was retried already", f"hpctrain retry {home.name}")


def _by_site(targets: Sequence[RetryTarget]) -> list[list[RetryTarget]]:
    """Group runs by site: single jobs of different sites may share a folder."""
    groups: dict[tuple[str, str], list[RetryTarget]] = defaultdict(list)
    for target in targets:
        manifest = manifest_of(target.model)
        groups[str(manifest.provenance.get(PROFILE, "")), manifest.plan.site].append(target)
    return list(groups.values())


def _targets(path: Path, home: Path, runs: Sequence[Run]) -> list[RetryTarget]:
    study = read_study(home) if path == home else None
    return _singles(home, runs) if study is None else _of_study(study, home, runs)


def _of_study(study: StudyManifest, home: Path, runs: Sequence[Run]) -> list[RetryTarget]:
    latest = latest_attempts(runs)
    targets = []
    for point in study.points:
        for repetition in range(1, study.spec.repetitions + 1):
            attempt, run = latest.get(f"{point.stem}-r{repetition}", (0, None))
            if run is not None and not _has_no_result(run):
                continue
            if run is not None and run.manifest is not None:
                targets.append(_retry_target(run))
                continue
            model = _sibling(point.stem, runs, home)
            old = run.folder.run_id if run is not None else ""
            targets.append(
                RetryTarget(model=model, repetition=repetition, attempt=attempt + 1, repeats=old)
            )
    return targets


def _singles(home: Path, runs: Sequence[Run]) -> list[RetryTarget]:
    """Return runs that were not retried; a retry that was not submitted replaces its run."""
    # All runs in the folder: the retry of a single job has another name.
    later = {
        str(run.manifest.provenance.get(RETRY_OF)): run
        for run in combine(read_runs(home), {})
        if run.manifest is not None
    }
    targets: dict[RunFolder, RetryTarget] = {}
    for run in filter(_has_no_result, runs):
        last = later.get(run.folder.run_id, run)
        if last is run or is_untouched(last):
            targets[last.folder] = _retry_target(last)
    return list(targets.values())


def _retry_target(run: Run) -> RetryTarget:
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


def attempts(run: Run, all_runs: Sequence[Run]) -> list[Run]:
    """Return a run and those that it repeats, the latest first."""
    by_id = {other.folder.run_id: other for other in all_runs}
    chain = [run]
    while (older := by_id.get(_repeats(chain[-1]))) and older not in chain:
        chain.append(older)
    return chain


def _repeats(run: Run) -> str:
    name = RunName.parse(run.folder.run_id)
    if name and name.attempt > 1:
        return str(msgspec.structs.replace(name, attempt=name.attempt - 1))
    return str(run.manifest.provenance.get(RETRY_OF, "")) if run.manifest else ""


def _has_no_result(run: Run) -> bool:
    return never_submitted(run) or (run.state.finished and run.state is not JobState.COMPLETED)


def _states(runs: Sequence[Run]) -> str:
    states = sorted({run.state.value for run in runs})
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''} {', '.join(states)}"
