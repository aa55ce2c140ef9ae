"""Runs without a result -> new attempts, from their run folders."""

import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.base.data_folders import template_path
from hpc_train.base.errors import SpecError, StoreError
from hpc_train.base.files import is_own, owner, read_regular
from hpc_train.base.values import Value, encode_unit
from hpc_train.diagnosis.diagnose_runs import explain
from hpc_train.jobs.override import key_paths, parse_setting
from hpc_train.jobs.read_job import build_job
from hpc_train.jobs.study import Point
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.conditions import provenance
from hpc_train.runs.expected_runs import latest_attempts, missing_runs
from hpc_train.runs.json_files import exclusive
from hpc_train.runs.nodes import bad_nodes
from hpc_train.runs.run import (
    PROFILE,
    RESUMES_FROM,
    RETRY_OF,
    JobState,
    Manifest,
    Run,
    RunFolder,
    RunName,
    Script,
    StudyManifest,
)
from hpc_train.runs.run_folders import CHECKPOINTS, is_run, read_study, run_folders
from hpc_train.runs.run_states import (
    combine,
    executor_of,
    is_untouched,
    never_submitted,
    read_runs,
    runs_below,
)
from hpc_train.scripts.prepare import Prepared, PreparedSite, prepare_points
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from hpc_train.sites.search import find_profile
from hpc_train.submissions.submit import (
    Entry,
    Submitted,
    check_start,
    options_of,
    profile_facts,
    ready_options,
    single_run_id,
    submission_notices,
    submit_entries,
)


def retry(
    path: Path,
    argv: Sequence[str],
    say: Callable[[str], None],
    *,
    exclude_failed_nodes: bool = False,
    max_gpu_hours: float | None = None,
    settings: Sequence[str] = (),
) -> Submitted:
    """Resubmit the runs below a path that failed, were lost or cancelled.

    Settings change the job of a run outside a study, which is then checked as that of a submission.
    `exclude_failed_nodes` excludes the nodes where a rank failed first, those of a lost run that
    Slurm reports as down or drained, and nodes that other runs below the path report as bad.

    Raises:
        StoreError: there is nothing to retry, or a run's files are damaged.
        HpcTrainError: folders of runs that were not submitted are removed; a setting is wrong.
    """
    home = path.parent if is_run(path) else path
    _check_owner([home, *(one.path for one in run_folders(home))])
    with exclusive(home / ".submit.lock", say):
        runs = runs_below(path)
        study = read_study(home) if path == home else None
        targets = _of_study(study, runs) if study else _singles(home, runs)
        for run in runs:
            if run.newer:
                say(f"{run.folder.run_id} is not retried: {run.problem}")
        if not targets:
            raise _nothing_to_retry(path, home, runs)
        all_runs = runs if path == home or not exclude_failed_nodes else runs_below(home)
        notices: list[str] = []
        facts = provenance(Path(), argv)
        batches = []
        # Single jobs of different sites may share a folder.
        groups: dict[tuple[object, str], list[Run]] = defaultdict(list)
        for one in targets:
            manifest = manifest_of(one)
            groups[manifest.provenance.get(PROFILE), manifest.plan.site].append(one)
        for group in groups.values():
            entries = [retry_entry(one, facts, settings, notices.append) for one in group]
            site = load_site(_profile(entries[0][0]))
            executor_of(site.value.scheduler).refuse(site)
            options = options_of(site, entries)
            if exclude_failed_nodes:
                failed = [run for one in group for run in attempts(one, all_runs)]
                plans = [manifest.plan for manifest, _ in entries]
                exclude = _nodes_to_exclude(site.value, plans, failed, notices.append, all_runs)
                options = msgspec.structs.replace(options, exclude=exclude)
            batches.append((entries, options))
        batches = [(one, ready_options(home, one, options)) for one, options in batches]
        for text in (*notices, *submission_notices(batches, max_gpu_hours)):
            say(text)
        explain(targets, home, say)
        ready = [one.folder for one in targets if is_untouched(one) and not settings]
        new = tuple(run for one in batches for run in submit_entries(home, *one, ready))
        if not new:
            raise _already_retried(path, home)
        return Submitted(home=home, new=new)


def _check_owner(folders: Sequence[Path]) -> None:
    """Refuse jobs of another user: a retry would run, as this one, what he wrote.

    Raises:
        StoreError: a folder is not one's own.
    """
    for folder in folders:
        if not is_own(folder):
            own = f"cp -r {shlex.quote(str(folder))} {shlex.quote(folder.name)}"
            raise StoreError(
                f"{folder}: it belongs to {owner(folder)}, whose job a retry would run as yours",
                f"read its job.sbatch, then retry your own copy: {own}",
            )


def _nodes_to_exclude(
    site: SiteProfile,
    plans: Sequence[LaunchPlan],
    runs: Sequence[Run],
    say: Callable[[str], None],
    others: Sequence[Run],
) -> tuple[str, ...]:
    """Return the nodes where earlier runs of the same site failed, and bad ones of other runs."""
    if find_batch_system(site.scheduler).this_machine:
        say(f"{site.name} is one node, which is used again")
        return ()
    names = {plan.site for plan in plans}
    beside = [one for one in others if one.manifest and one.manifest.plan.site in names]
    exclude = _failed_nodes(runs, bad_nodes(beside, time.time()))
    say(f"without the nodes {', '.join(exclude)}" if exclude else "no node is known to have failed")
    # A list of hosts may be too short to leave one out; it is then used last.
    left = [host for host in site.hosts if host.name not in exclude]
    nodes = max(plan.topology.nodes for plan in plans)
    if site.hosts and len(left) < nodes:
        say(f"{site.name} has too few other hosts for {nodes} nodes: they are used again")
    return exclude


def _failed_nodes(runs: Sequence[Run], bad: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes on which a rank failed first, the broken ones of lost runs, and bad ones."""
    blamed = set(bad)
    for run in runs:
        failure = run.status.failure if run.status else None
        if failure is not None and not failure.lost_peer:
            blamed.add(failure.host.partition(".")[0])
        if run.status is not None and run.status.bad_nodes:
            blamed.update(run.status.bad_nodes.split(","))
        lost = run.state in (JobState.NODE_FAIL, JobState.LOST)
        if run.submission and lost and find_batch_system(run.submission.executor).steps:
            # Another scheduler needs none of Slurm's modules.
            from hpc_train.slurm.slurm_commands import broken_nodes

            blamed.update(broken_nodes(run.submission.cluster))
    return tuple(sorted(blamed))


def _nothing_to_retry(path: Path, home: Path, runs: Sequence[Run]) -> StoreError:
    if path != home and any(map(_has_no_result, runs)):
        return _already_retried(path, home)
    why = next((run.problem for run in runs if run.state is JobState.UNKNOWN), "")
    if not why and path == home and missing_runs(home, runs):
        why = "hpctrain submit STUDY.yaml submits what is missing"
    states = ", ".join(sorted({run.state.value for run in runs}))
    count = f"{len(runs)} run{'s' if len(runs) != 1 else ''}"
    return StoreError(f"{path.name}: nothing to retry; {count} {states}", why)


def _already_retried(path: Path, home: Path) -> StoreError:
    return StoreError(f"{path.name}: it was retried already", f"hpctrain retry {home.name}")


def _of_study(study: StudyManifest, runs: Sequence[Run]) -> list[Run]:
    """Return the last attempts without a result; `submit` makes those whose folder is missing."""
    latest = latest_attempts(runs)
    last = (latest.get(name) for name, _, _ in study.requested())
    return [run for run in last if run is not None and _has_no_result(run)]


def _singles(home: Path, runs: Sequence[Run]) -> list[Run]:
    """Return runs that were not retried; a retry that was not submitted replaces its run."""
    # All runs in the folder: the retry of a single job has another name.
    later = {
        str(run.manifest.provenance.get(RETRY_OF)): run
        for run in combine(read_runs(home), {})
        if run.manifest is not None
    }
    targets: dict[RunFolder, Run] = {}
    for run in filter(_has_no_result, runs):
        last = later.get(run.folder.run_id, run)
        if last is run or is_untouched(last):
            targets[last.folder] = last
    return list(targets.values())


def attempts(run: Run, all_runs: Sequence[Run]) -> list[Run]:
    """Return a run and those that it repeats, the latest first."""
    by_id = {other.folder.run_id: other for other in all_runs}
    chain = [run]
    while True:
        last = chain[-1]
        name = RunName.parse(last.folder.run_id)
        repeated = str(last.manifest.provenance.get(RETRY_OF, "")) if last.manifest else ""
        if name and name.attempt > 1:
            repeated = str(msgspec.structs.replace(name, attempt=name.attempt - 1))
        older = by_id.get(repeated)
        if older is None or older in chain:
            return chain
        chain.append(older)


def _has_no_result(run: Run) -> bool:
    return never_submitted(run) or (run.state.finished and run.state is not JobState.COMPLETED)


def manifest_of(run: Run) -> Manifest:
    """Return the manifest of a run.

    Raises:
        StoreError: it is damaged.
    """
    if run.manifest is None:
        raise StoreError(
            f"{run.folder.path}: {run.problem}", "remove the folder, then submit the study again"
        )
    return run.manifest


def retry_entry(
    run: Run,
    facts: dict[str, object],
    settings: Sequence[str],
    say: Callable[[str], None],
) -> Entry:
    """Return the next attempt of a run: unchanged or, with `settings`, planned again.

    One that was not submitted, because its command was killed, is submitted itself.

    Raises:
        StoreError: a file of the run is damaged, or it cannot be changed because it is of a study.
        HpcTrainError: the changed job is wrong, or does not fit the site.
    """
    old = manifest_of(run)
    if is_untouched(run) and not settings:
        return old, _script(run, old)
    name, now = RunName.parse(run.folder.run_id), datetime.now(timezone.utc)
    attempt = (name.attempt if name else old.attempt) + 1
    # Where a scheduler keeps the checkpoints of a run; one of a study is measured anew.
    kept = run.submission.checkpoints if run.submission else ""
    resumed = {RESUMES_FROM: kept} if kept and old.study is None else {}
    if settings:
        prepared = changed_job(run.folder, old, settings)
        for warning in prepared.warnings:
            say(f"warning: {warning}")
        (point,) = prepared.points
        run_id, script = single_run_id(now, point.stem), point.script
        facts = {**facts, **profile_facts(prepared.site.profile)}
        old = msgspec.structs.replace(
            old,
            spec=point.job.value,
            plan=point.plan,
            script_digest=script.digest,
            template_digest=script.template_digest,
        )
    else:
        run_id = single_run_id(now, old.run_id.rpartition("-")[2])
        if name:
            run_id = str(msgspec.structs.replace(name, attempt=attempt))
        script = _script(run, old)
    manifest = msgspec.structs.replace(
        old,
        run_id=run_id,
        repetition=name.repetition if name else 1,
        attempt=attempt,
        created=now.isoformat(timespec="seconds"),
        provenance={**old.provenance, **facts, **resumed, RETRY_OF: run.folder.run_id},
    )
    _say_of_checkpoints(run, manifest, say)
    return manifest, script


def _say_of_checkpoints(old: Run, new: Manifest, say: Callable[[str], None]) -> None:
    """Say which checkpoints a new run has, unless the job names their folder."""
    if CHECKPOINTS in dict(new.plan.env):
        return
    if kept := new.provenance.get(RESUMES_FROM):
        say(f"{new.run_id} resumes from {kept}; hpctrain submit starts a job from step 0")
        return
    step = old.starts[-1].step if old.starts else 0
    if not step:
        return
    say(f"{new.run_id} begins at step 0: {old.folder.run_id} has a checkpoint of step {step}")
    if new.study is None:
        setting = shlex.quote(f"env.{CHECKPOINTS}={old.folder.path.absolute()}/checkpoints")
        say(f"  to continue from it: hpctrain cancel {new.run_id}, then")
        say(f"  hpctrain retry {new.run_id} --set {setting}")


def _script(run: Run, manifest: Manifest) -> Script:
    try:
        text = read_regular(run.folder.script).decode()
        beside = tuple((p.name, read_regular(p).decode()) for p in run.folder.beside)
    except OSError as failure:
        raise StoreError(f"{run.folder.script}: {failure.strerror or failure}") from None
    except UnicodeDecodeError:
        raise StoreError(f"{run.folder.script}: damaged: not UTF-8 text") from None
    return Script(
        text=text,
        digest=manifest.script_digest,
        template_digest=manifest.template_digest,
        beside=beside,
    )


def changed_job(folder: RunFolder, manifest: Manifest, settings: Sequence[str]) -> Prepared:
    """Plan the job of a run again for its site, with other values of some keys.

    Raises:
        StoreError: the run is one of a study, or the setting is the name of its folder.
        HpcTrainError: a wrong setting, or a job that `submit` would refuse.
    """
    options = " ".join(f"--set {shlex.quote(text)}" for text in settings)
    if manifest.study is not None:
        raise StoreError(
            f"{manifest.run_id}: --set cannot change a run of a study: it would have another job "
            "than the other runs of its point",
            f"hpctrain submit STUDY.yaml {options} submits each changed point as new runs",
        )
    overrides = [parse_setting(text) for text in settings]
    if any(override.key == "name" for override in overrides):
        raise SpecError(
            f"--set name: a retry stays in the folder {folder.path.parent}",
            "hpctrain submit FILE --name NAME submits into another one",
        )
    data = _stated(manifest.spec)
    paths = (path for key, value in data.items() for path in key_paths(key, value))
    origins = dict.fromkeys(paths, str(folder.manifest))
    job = build_job(data, origins, overrides, folder.manifest)
    profile = _profile(manifest)
    site = PreparedSite(
        profile=profile.absolute(), site=load_site(profile), folders=template_path(profile)
    )
    points, _ = prepare_points((Point(axes={}, job=job),), site, nested=False, plain=False)
    prepared = Prepared(
        name=points[0].plan.name,
        site=site,
        study=None,
        points=points,
        warnings=tuple(dict.fromkeys(points[0].plan.warnings)),
    )
    check_start(prepared)
    return prepared


def _stated(value: Value) -> dict[str, Any]:
    """Return the values that are not defaults, as a file would state them."""
    return {
        field.name: _stated(inner)
        if isinstance(inner, Value)
        else msgspec.json.decode(msgspec.json.encode(inner, enc_hook=encode_unit))
        for field in msgspec.structs.fields(value)
        if (inner := getattr(value, field.name)) != field.default
    }


def _profile(manifest: Manifest) -> Path:
    """Return the profile that the run was planned with, or by name if the file was removed."""
    file = str(manifest.provenance.get(PROFILE, ""))
    return Path(file) if file and Path(file).is_file() else find_profile(manifest.plan.site)
