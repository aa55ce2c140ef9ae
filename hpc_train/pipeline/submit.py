"""Prepared jobs -> run folders -> an executor; only what is missing is submitted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from hpc_train.errors import HpcTrainError
from hpc_train.model.run import MANIFEST_SCHEMA, Manifest, Run, RunFolder
from hpc_train.model.script import Script
from hpc_train.model.study import StudyManifest, StudyPoint
from hpc_train.model.submission import JobState
from hpc_train.model.value import Value
from hpc_train.pipeline.preflight import check_start
from hpc_train.pipeline.prepare import Prepared, PreparedPoint
from hpc_train.pipeline.query import executor_of, latest_attempts, runs_below
from hpc_train.runs.files import exclusive
from hpc_train.runs.provenance import provenance
from hpc_train.runs.store import create_runs, remove_home, remove_root, remove_runs, write_study

_GONE = (JobState.LOST, JobState.CANCELLED, JobState.UNKNOWN)


class Submitted(Value, frozen=True, kw_only=True):
    """What a submission did: the new runs, and those that were there already."""

    home: Path
    new: tuple[RunFolder, ...]
    kept: tuple[Run, ...]


class _Wanted(Value, frozen=True, kw_only=True):
    point: PreparedPoint
    repetition: int
    attempt: int


def submit(
    prepared: Prepared, root: Path, argv: Sequence[str], *, rerun_failed: bool = False
) -> Submitted:
    """Submit a job, or the runs of a study that are missing.

    A run is missing when it was never started, was lost or cancelled. Failed ones have a result
    and stay, unless `rerun_failed`.

    Raises:
        HpcTrainError: nothing was submitted, and nothing new is left on the disk.
    """
    check_start(prepared)
    home = root / prepared.name
    made_root = not root.exists()
    try:
        with exclusive(home / ".submit.lock"):
            kept, wanted = _split(prepared, home, rerun_failed)
            facts = provenance(Path(), argv)
            new = create_runs(home, [_manifest(prepared, item, facts) for item in wanted])
            _hand_over(prepared, home, new)
    except HpcTrainError:
        remove_home(home)
        if made_root:
            remove_root(root)
        raise
    return Submitted(home=home, new=new, kept=kept)


def _hand_over(prepared: Prepared, home: Path, new: tuple[RunFolder, ...]) -> None:
    try:
        if prepared.study is not None:
            write_study(home, study_manifest(prepared))
        if new:
            executor_of(prepared.site.value.scheduler).submit(home, new)
    except HpcTrainError:
        remove_runs(new)
        raise


def study_manifest(prepared: Prepared) -> StudyManifest:
    """Return the list of everything that the study asks for."""
    if prepared.study is None:
        raise AssertionError("a single job has no study manifest")
    points = tuple(
        StudyPoint(axes=point.axes, topology=point.plan.topology, stem=point.stem)
        for point in prepared.points
    )
    spec, baseline = prepared.study.spec, prepared.study.baseline
    return StudyManifest(schema=MANIFEST_SCHEMA, spec=spec, baseline=baseline, points=points)


def _split(
    prepared: Prepared, home: Path, rerun_failed: bool
) -> tuple[tuple[Run, ...], list[_Wanted]]:
    """Return the runs that stay, and what is to be run, in an order that hides no drift.

    Repetitions of one point in a row would make a machine that slows down look like scaling.
    """
    if prepared.study is None:
        return (), [_Wanted(point=prepared.points[0], repetition=1, attempt=1)]
    there = latest_attempts(runs_below(home))
    again = (*_GONE, JobState.FAILED, JobState.TIMEOUT) if rerun_failed else _GONE
    kept: list[Run] = []
    wanted: list[_Wanted] = []
    for point in prepared.points:
        for repetition in range(1, prepared.study.spec.repetitions + 1):
            attempt, run = there.get(f"{point.stem}-r{repetition}", (0, None))
            if run is not None and run.state not in again:
                kept.append(run)
            else:
                wanted.append(_Wanted(point=point, repetition=repetition, attempt=attempt + 1))
    random.Random(prepared.study.spec.seed).shuffle(wanted)  # noqa: S311 - an order, no secret
    return tuple(kept), wanted


def _manifest(
    prepared: Prepared, wanted: _Wanted, facts: dict[str, object]
) -> tuple[Manifest, Script]:
    now = datetime.now(timezone.utc)
    point = wanted.point
    if prepared.study is None:
        run_id = f"{now:%Y%m%d-%H%M%S-%f}-{point.stem}"
    else:
        suffix = f".{wanted.attempt}" if wanted.attempt > 1 else ""
        run_id = f"{point.stem}-r{wanted.repetition}{suffix}"
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
        provenance=facts,
    )
    return manifest, point.script
