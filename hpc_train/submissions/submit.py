"""Prepared jobs -> run folders -> an executor; only what is missing is submitted."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from hpc_train.base.data_folders import template_path
from hpc_train.base.errors import HpcTrainError
from hpc_train.base.files import is_regular, is_there, read_regular, sha256_of
from hpc_train.base.value import Value
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.shared_allocation import allocate, check_budget, cost_of
from hpc_train.runs.conditions import provenance
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.expected_runs import latest_attempts
from hpc_train.runs.json_files import check_version, exclusive, write_file
from hpc_train.runs.run import (
    MANIFEST_SCHEMA,
    PROFILE,
    PROFILE_DIGEST,
    JobState,
    Manifest,
    Run,
    RunFolder,
    RunName,
    Script,
    SlurmEndpoint,
    StudyManifest,
    StudyPoint,
)
from hpc_train.runs.run_folders import (
    STUDY_FILE,
    create_runs,
    remove_home,
    remove_root,
    remove_runs,
    write_study,
)
from hpc_train.runs.run_states import executor_of, is_untouched, never_submitted, runs_below
from hpc_train.scripts.prepare import Prepared, PreparedPoint, randomised_blocks
from hpc_train.scripts.render import render_allocation
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.profile import SiteProfile, SourcedSite
from hpc_train.submissions.submission_checks import check_checkpoint_folders, check_start, preview

# States without a result that are not failures of the job; a study reruns them.
_GONE = (JobState.LOST, JobState.CANCELLED, JobState.NODE_FAIL, JobState.PREEMPTED)
_FAILED = (JobState.FAILED, JobState.TIMEOUT, JobState.OUT_OF_MEMORY)

Entry = tuple[Manifest, Script]


class Submitted(Value, frozen=True, kw_only=True):
    """Result of a submission: the new runs, and the existing ones."""

    home: Path
    new: tuple[RunFolder, ...]
    kept: tuple[Run, ...] = ()


def no_output(text: str) -> None:
    """Ignore a message."""


def submit(
    prepared: Prepared,
    root: Path,
    argv: Sequence[str],
    say: Callable[[str], None] = no_output,
    *,
    rerun_failed: bool = False,
    max_gpu_hours: float | None = None,
) -> Submitted:
    """Submit a job, or the missing runs of a study; `say` receives the notices and the cost before.

    A run is missing if it was never started, was lost, cancelled or ended by the scheduler. Failed
    ones have a result and are kept, unless they are to run again.

    Raises:
        HpcTrainError: folders of runs that were not submitted are removed.
    """
    check_start(prepared)
    home = root / prepared.name
    check_version(home / STUDY_FILE)
    made_root = not root.exists()
    try:
        with exclusive(home / ".submit.lock", say):
            latest = latest_attempts(runs_below(home)) if prepared.study else {}
            kept, entries = _split(prepared, latest, rerun_failed, provenance(Path(), argv))
            options = ready_options(home, entries, options_of(prepared.site.site, entries))
            notices = submission_notices([(entries, options)], max_gpu_hours)
            others = _at_other_sites(prepared, latest)
            if entries:
                for text in (*others, *notices, *preview(prepared)):
                    say(text)
            study = study_manifest(prepared) if prepared.study is not None else None
            new = submit_entries(home, entries, options, study=study)
    except HpcTrainError:
        remove_home(home)
        if made_root:
            remove_root(root)
        raise
    return Submitted(home=home, new=new, kept=kept)


def _split(
    prepared: Prepared,
    latest: Mapping[str, tuple[int, Run]],
    rerun_failed: bool,
    facts: dict[str, object],
) -> tuple[tuple[Run, ...], list[Entry]]:
    """Return the runs to keep, and those to submit, one repetition after the other.

    With consecutive repetitions of one point, a drift of the machine would look like scaling. A run
    of unknown state is not missing, so that it never runs twice.
    """
    if prepared.study is None:
        (point,) = prepared.points
        return (), [_entry(prepared, point, 1, 1, facts)]
    states = (*_GONE, *_FAILED) if rerun_failed else _GONE
    kept: list[Run] = []
    wanted: list[list[tuple[PreparedPoint, int, int]]] = []
    for repetition in range(1, prepared.study.spec.repetitions + 1):
        wanted.append([])
        for point in prepared.points:
            attempt, run = latest.get(f"{point.stem}-r{repetition}", (0, None))
            if run is not None and run.state not in states and not never_submitted(run):
                kept.append(run)
                continue
            if run is not None and is_untouched(run):
                remove_runs([run.folder])
                attempt -= 1
            wanted[-1].append((point, repetition, attempt + 1))
    order = randomised_blocks(wanted, prepared.study.spec.seed)
    return tuple(kept), [_entry(prepared, *one, facts) for one in order]


def _entry(
    prepared: Prepared,
    point: PreparedPoint,
    repetition: int,
    attempt: int,
    facts: dict[str, object],
) -> Entry:
    now = datetime.now(timezone.utc)
    name = RunName(stem=point.stem, repetition=repetition, attempt=attempt)
    manifest = Manifest(
        schema=MANIFEST_SCHEMA,
        run_id=str(name) if prepared.study else single_run_id(now, point.stem),
        name=prepared.name,
        study=prepared.study.spec.name if prepared.study else None,
        axes=point.axes,
        repetition=repetition,
        attempt=attempt,
        created=now.isoformat(timespec="seconds"),
        spec=point.job.value,
        plan=point.plan,
        script_digest=point.script.digest,
        template_digest=point.script.template_digest,
        provenance={**facts, **profile_facts(prepared.site.profile)},
    )
    return manifest, point.script


def single_run_id(now: datetime, stem: str) -> str:
    """Return the run id of a single job: its time in UTC and its digest."""
    return f"{now:%Y%m%d-%H%M%S-%f}-{stem}"


def profile_facts(path: Path) -> dict[str, str]:
    """Return path and digest of the profile, because it may change later."""
    return {PROFILE: str(path), PROFILE_DIGEST: sha256_of(path) if path.is_file() else ""}


def study_manifest(prepared: Prepared) -> StudyManifest:
    """Return the list of all requested runs of the study."""
    if prepared.study is None:
        raise AssertionError("a single job has no study manifest")
    return StudyManifest(
        schema=MANIFEST_SCHEMA,
        spec=prepared.study.spec,
        baseline=prepared.study.baseline,
        points=tuple(
            StudyPoint(axes=point.axes, topology=point.plan.topology, stem=point.stem)
            for point in prepared.points
        ),
        refused=prepared.refused,
    )


def _at_other_sites(prepared: Prepared, latest: Mapping[str, tuple[int, Run]]) -> Iterator[str]:
    """Yield a notice of the study's runs at another site than now."""
    found = {run.manifest.plan.site for _, run in latest.values() if run.manifest}
    if found := found - {prepared.site.name}:
        yield (
            f"its runs at {', '.join(sorted(found))} are left out of reports from now on; to keep "
            "both, submit with another --name"
        )


def options_of(site: SourcedSite, entries: Sequence[Entry]) -> ExecutorOptions:
    """Return the options of runs for a site; nested ones get the script of their allocation.

    Raises:
        PlanError: the runs do not fit into one allocation.
    """
    profile = site.value
    plan = entries[0][0].plan if entries else None
    script = None
    if any(manifest.plan.nested for manifest, _ in entries):
        runs = [(manifest.run_id, manifest.plan) for manifest, _ in entries]
        file = Path(str(entries[0][0].provenance.get(PROFILE, "")))
        script = render_allocation(allocate(site, runs, entries[0][0].name), template_path(file))
    return ExecutorOptions(
        cluster=cluster_of(profile, plan),
        limits=profile.limits,
        comment=plan.comment if plan else "",
        site=site,
        allocation=script,
    )


def cluster_of(profile: SiteProfile, plan: LaunchPlan | None = None) -> SlurmEndpoint:
    """Return how a site's scheduler is reached from this shell, and its two times.

    The shell's SLURM_CONF takes precedence over the profile's; --clusters of a plan over the
    shell's.
    """
    shell = os.environ.get("SLURM_CLUSTERS") or os.environ.get("SBATCH_CLUSTERS") or ""
    clusters = dict(plan.directives).get("clusters") if plan else None
    conf = os.environ.get("SLURM_CONF") or profile.slurm_conf
    reached = SlurmEndpoint(conf=conf, clusters=clusters or shell)
    if profile.poll is not None:
        reached = msgspec.structs.replace(reached, poll_s=float(profile.poll))
    return reached


def ready_options(
    home: Path, entries: Sequence[Entry], options: ExecutorOptions
) -> ExecutorOptions:
    """Check that a site can take its runs now, before anything is printed or written.

    Raises:
        HpcTrainError: it cannot, with the reason.
    """
    plans = [manifest.plan for manifest, _ in entries]
    return executor_of(plans[0].scheduler).ready(home, plans, options) if plans else options


def submission_notices(
    sites: Sequence[tuple[Sequence[Entry], ExecutorOptions]], max_gpu_hours: float | None
) -> list[str]:
    """Return the notices before a submission, with the cost.

    Raises:
        PlanError: all runs may cost more than `max_gpu_hours`.
    """
    groups = [[manifest.plan for manifest, _ in entries] for entries, _ in sites]
    check_budget(cost_of([plan for plans in groups for plan in plans]), max_gpu_hours)
    return list(dict.fromkeys(text for plans in groups for text in _site_notices(plans)))


def _site_notices(plans: Sequence[LaunchPlan], whole: str = "") -> Iterator[str]:
    """Yield the notices of a site and the cost of runs there; none for runs on this machine.

    `whole` says of what the cost is.
    """
    if not plans or find_batch_system(plans[0].scheduler).this_machine:
        return
    yield from executor_of(plans[0].scheduler).notices(plans[0])
    yield f"cost{whole}: {cost_of(plans)}"


def submit_entries(
    home: Path,
    entries: Sequence[Entry],
    options: ExecutorOptions,
    ready: Collection[RunFolder] = (),
    study: StudyManifest | None = None,
) -> tuple[RunFolder, ...]:
    """Create the runs' folders, write study.json, and submit the runs, in order.

    The folders of `ready` runs exist: the command that created them was killed. `study` is written
    before the first run.

    Raises:
        HpcTrainError: folders of runs that were not submitted are removed, unless they were ready.
    """
    created = create_runs(home, entries)
    folders = [RunFolder(path=home / manifest.run_id) for manifest, _ in entries]
    new = tuple(folder for folder in folders if folder in created or folder in ready)
    file = home / STUDY_FILE
    before = read_regular(file) if is_regular(file) else None
    try:
        if study is not None:
            write_study(home, study)
        if new:
            executor_of(entries[0][0].plan.scheduler).submit(home, new, options)
    except HpcTrainError:
        left = [run for run in new if not is_there(run.submission)]
        remove_runs([run for run in left if run in created])
        if len(left) == len(new) and before is None:
            file.unlink(missing_ok=True)
        elif len(left) == len(new) and before != read_regular(file):
            write_file(file, before or b"")
        raise
    return new


def dry_run(prepared: Prepared, root: Path, max_gpu_hours: float | None = None) -> Iterator[str]:
    """Yield the messages of `submit`, then the answer of `sbatch --test-only` for each script.

    The runs would be below the results folder `root`, where nothing is written.

    Raises:
        HpcTrainError: the submission would be refused before any sbatch.
    """
    check_checkpoint_folders(prepared)
    number = prepared.study.spec.repetitions if prepared.study else 1
    plans = [point.plan for point in prepared.points for _ in range(number)]
    check_budget(cost_of(plans), max_gpu_hours)
    site = prepared.site
    if not site.batch.steps:
        check_start(prepared)
        # As `submit` asks, without its limits: they hold for runs that are missing.
        executor = executor_of(site.site.value.scheduler)
        executor.ready(root / prepared.name, plans, ExecutorOptions(site=site.site))
    # Existing runs would be kept; whether there are any depends on the results folder.
    yield from _site_notices(plans, " for the whole study" * bool(prepared.study))
    yield from preview(prepared)
    if not site.batch.steps:
        return
    if not shutil.which("sbatch"):
        yield "sbatch is not installed here, so it was not tested whether the cluster accepts this"
        return
    check_start(prepared)
    yield from _answers(cluster_of(site.site.value, plans[0]), prepared)


def _answers(cluster: SlurmEndpoint, prepared: Prepared) -> Iterator[str]:
    # Other schedulers need none of Slurm's modules.
    from hpc_train.slurm.sbatch import test_only

    study = bool(prepared.study)
    scripts = [(f" {one.stem}" if study else "", one.script) for one in prepared.points]
    if prepared.allocation is not None:
        scripts = [(" of the allocation", prepared.allocation)]
    for name, script in scripts:
        with tempfile.TemporaryDirectory(prefix="hpctrain-") as folder:
            path = Path(folder, "job.sbatch")
            path.write_text(script.text, encoding="utf-8")
            answer = test_only(cluster, path)
        yield f"sbatch --test-only{name}: {answer}"
