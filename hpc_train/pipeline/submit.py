"""Prepared jobs -> run folders -> an executor; only what is missing is submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from hpc_train.errors import HpcTrainError
from hpc_train.json_files import check_version, exclusive
from hpc_train.model.run import (
    MANIFEST_SCHEMA,
    PROFILE,
    PROFILE_DIGEST,
    Manifest,
    Run,
    RunName,
)
from hpc_train.model.study import StudyManifest, StudyPoint
from hpc_train.model.submission import JobState, Script
from hpc_train.model.value import Value
from hpc_train.pipeline.checkpoint_owner import owner_notices
from hpc_train.pipeline.prepared import Prepared, PreparedPoint
from hpc_train.pipeline.render import randomised_blocks
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.study_precision import preview
from hpc_train.pipeline.submission_checks import check_start
from hpc_train.pipeline.submit_by_site import (
    prepared_batches,
    ready_batches,
    submission_notices,
    submit_batches,
)
from hpc_train.pipeline.submit_runs import (
    Entry,
    Submitted,
)
from hpc_train.regularfile import sha256_of
from hpc_train.runs.expected_runs import latest_attempts
from hpc_train.runs.provenance import provenance
from hpc_train.runs.run_folders import STUDY_FILE, remove_home, remove_root, remove_runs
from hpc_train.runs.run_state_and_reason import is_untouched, never_submitted

# States without a result that are not failures of the job; a study reruns them.
_GONE = (JobState.LOST, JobState.CANCELLED, JobState.NODE_FAIL, JobState.PREEMPTED)
_FAILED = (JobState.FAILED, JobState.TIMEOUT, JobState.OUT_OF_MEMORY)


class SubmitOptions(Value, frozen=True, kw_only=True):
    """Options of a submission."""

    rerun_failed: bool = False
    max_gpu_hours: float | None = None


DEFAULT_OPTIONS = SubmitOptions()


class _Wanted(Value, frozen=True, kw_only=True):
    point: PreparedPoint
    repetition: int
    attempt: int


def no_output(text: str) -> None:
    """Ignore a message."""


def submit(
    prepared: Prepared,
    root: Path,
    argv: Sequence[str],
    options: SubmitOptions = DEFAULT_OPTIONS,
    say: Callable[[str], None] = no_output,
) -> Submitted:
    """Submit a job, or the missing runs of a study; `say` receives the notices and the cost before.

    A run is missing if it was never started, was lost, cancelled or ended by the scheduler. Failed
    ones have a result and are kept, unless the options say to rerun them.

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
            kept, wanted = _split(prepared, latest, options.rerun_failed)
            entries = _entries(prepared, wanted, argv)
            batches = ready_batches(home, prepared_batches(prepared, entries))
            notices = submission_notices(batches, options.max_gpu_hours)
            others = _at_other_sites(prepared, latest)
            owners = owner_notices(prepared)
            for text in (*others, *owners, *notices, *preview(prepared)) if wanted else ():
                say(text)
            study = study_manifest(prepared) if prepared.study is not None else None
            new = submit_batches(home, batches, say, study=study)
    except HpcTrainError:
        remove_home(home)
        if made_root:
            remove_root(root)
        raise
    return Submitted(home=home, new=new, kept=kept)


def profile_facts(path: Path) -> dict[str, str]:
    """Return path and digest of the profile, because it may change later."""
    return {PROFILE: str(path), PROFILE_DIGEST: sha256_of(path) if path.is_file() else ""}


def _entries(
    prepared: Prepared, wanted: Sequence[_Wanted], argv: Sequence[str]
) -> dict[str, list[Entry]]:
    """Return the runs to submit, by the name of their site."""
    facts = provenance(Path(), argv)
    entries: dict[str, list[Entry]] = {site.name: [] for site in prepared.sites}
    for item in wanted:
        entries[item.point.place.name].append(_manifest(prepared, item, facts))
    return entries


def study_manifest(prepared: Prepared) -> StudyManifest:
    """Return the list of all requested runs of the study."""
    if prepared.study is None:
        raise AssertionError("a single job has no study manifest")
    points = tuple(
        StudyPoint(axes=point.axes, topology=point.plan.topology, stem=point.stem)
        for point in prepared.points
    )
    spec, baseline = prepared.study.spec, prepared.study.baseline
    return StudyManifest(
        schema=MANIFEST_SCHEMA,
        spec=spec,
        baseline=baseline,
        points=points,
        refused=prepared.refused,
    )


def _at_other_sites(prepared: Prepared, latest: Mapping[str, tuple[int, Run]]) -> tuple[str, ...]:
    """Return a notice of the study's runs at sites that are none of it now."""
    here = {site.name for site in prepared.sites}
    found = {run.manifest.plan.site for _, run in latest.values() if run.manifest} - here
    if not found:
        return ()
    sites = ", ".join(sorted(found | here))
    return (
        f"its runs at {', '.join(sorted(found))} are left out of reports from now on; to keep "
        f"both, submit with another --name, or with --set 'axes.site=[{sites}]'",
    )


def _split(
    prepared: Prepared, latest: Mapping[str, tuple[int, Run]], rerun_failed: bool
) -> tuple[tuple[Run, ...], list[_Wanted]]:
    """Return the runs to keep and the runs to submit, one repetition after the other.

    With consecutive repetitions of one point, a drift of the machine would look like scaling.
    """
    if prepared.study is None:
        return (), [_Wanted(point=prepared.points[0], repetition=1, attempt=1)]
    states = (*_GONE, *_FAILED) if rerun_failed else _GONE
    kept: list[Run] = []
    wanted: list[list[_Wanted]] = []
    for repetition in range(1, prepared.study.spec.repetitions + 1):
        wanted.append([])
        for point in prepared.points:
            attempt, run = latest.get(f"{point.stem}-r{repetition}", (0, None))
            if run is not None and not _is_missing(run, states):
                kept.append(run)
                continue
            if run is not None and is_untouched(run):
                remove_runs([run.folder])
                attempt -= 1
            wanted[-1].append(_Wanted(point=point, repetition=repetition, attempt=attempt + 1))
    return tuple(kept), randomised_blocks(wanted, prepared.study.spec.seed)


def single_run_id(now: datetime, stem: str) -> str:
    """Return the run id of a single job: its time in UTC and its digest."""
    return f"{now:%Y%m%d-%H%M%S-%f}-{stem}"


def _is_missing(run: Run, states: Sequence[JobState]) -> bool:
    """Whether a run is missing; a run of unknown state is not, so that it never runs twice."""
    return run.state in states or never_submitted(run)


def _manifest(
    prepared: Prepared, wanted: _Wanted, facts: dict[str, object]
) -> tuple[Manifest, Script]:
    now = datetime.now(timezone.utc)
    point = wanted.point
    name = RunName(stem=point.stem, repetition=wanted.repetition, attempt=wanted.attempt)
    run_id = str(name) if prepared.study else single_run_id(now, point.stem)
    manifest = Manifest(
        schema=MANIFEST_SCHEMA,
        run_id=run_id,
        name=prepared.name,
        study=prepared.study.spec.name if prepared.study else None,
        axes=point.axes,
        repetition=wanted.repetition,
        attempt=wanted.attempt,
        created=now.isoformat(timespec="seconds"),
        spec=point.job.value,
        plan=point.plan,
        script_digest=point.script.digest,
        template_digest=point.script.template_digest,
        provenance={**facts, **profile_facts(point.place.profile)},
    )
    return manifest, point.script
