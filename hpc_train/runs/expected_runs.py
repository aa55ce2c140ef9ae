"""A study or job and its run folders -> every requested run, including missing ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hpc_train.errors import StoreError
from hpc_train.model.run import Run
from hpc_train.model.scaling_input import MISSING, ExpectedRun, ExpectedStudy, undeclared
from hpc_train.model.study import StudyManifest
from hpc_train.runs.attempts import latest_attempts

_NEVER = "never submitted, or its folder was removed"


def expected_study(
    manifest: StudyManifest, runs: Sequence[Run], problem_of: Callable[[Run], str]
) -> ExpectedStudy:
    """List every requested run of the study, including missing ones.

    `problem_of` returns why a run has no result, or an empty string.
    """
    latest = latest_attempts(runs)
    expected = []
    for point in manifest.points:
        for repetition in range(1, manifest.spec.repetitions + 1):
            stem = f"{point.stem}-r{repetition}"
            _, run = latest.get(stem, (0, None))
            expected.append(
                ExpectedRun(
                    run_id=run.folder.run_id if run else stem,
                    axes=point.axes,
                    repetition=repetition,
                    topology=point.topology,
                    state=run.state.value if run else MISSING,
                    problem=problem_of(run) if run else _NEVER,
                    **_of_job(run),
                )
            )
    return ExpectedStudy(
        name=manifest.spec.name,
        runs=tuple(expected),
        baseline=manifest.baseline,
        scaling=manifest.spec.scaling,
        warmup=manifest.spec.warmup,
        gates=manifest.spec.gates,
        notes=(
            *_placement(manifest),
            *_damaged(runs),
            *_other_runs(runs, {run.run_id for run in expected}),
        ),
    )


def _of_job(run: Run | None) -> dict[str, Any]:
    """Return the number of requeues and the duration from the job's own status."""
    status = run.status if run else None
    if status is None:
        return {}
    wall = None if status.ended is None else max(0.0, status.ended - status.started)
    return {"restarts": status.restart_count, "wall_s": wall}


def _placement(manifest: StudyManifest) -> tuple[str, ...]:
    """Note that replicates inside one allocation vary less than separate jobs."""
    if manifest.spec.placement != "nested":
        return ()
    return (
        "placement nested: the runs used the same nodes, inside one allocation (or one per "
        "submission); the intervals do not include differences between allocations",
    )


def _damaged(runs: Sequence[Run]) -> tuple[str, ...]:
    """Yield the problems of runs with readable logs and damaged files."""
    return tuple(f"{run.folder.run_id}: {run.problem}" for run in runs if run.manifest is None)


def _other_runs(runs: Sequence[Run], expected: set[str]) -> tuple[str, ...]:
    """Yield a note on runs in the folder that are not in the table."""
    others = [run.folder.run_id for run in runs if run.folder.run_id not in expected]
    if not others:
        return ()
    shown = ", ".join(others[:6]) + (" …" if len(others) > 6 else "")
    return (
        f"{len(others)} earlier attempts, or runs of an earlier version of the job, "
        f"are left out: {shown}",
    )


def single_jobs(home: Path, runs: Sequence[Run], problem_of: Callable[[Run], str]) -> ExpectedStudy:
    """List the runs of a single job.

    Raises:
        StoreError: there are none.
    """
    if not runs:
        raise StoreError(f"{home}: no runs in this folder")
    counts: Counter[str] = Counter()
    expected = []
    for run in runs:
        plan = run.manifest.plan if run.manifest else None
        key = repr(plan.topology) if plan else "unknown"
        counts[key] += 1
        expected.append(
            ExpectedRun(
                run_id=run.folder.run_id,
                axes={},
                repetition=counts[key],
                topology=plan.topology if plan else None,
                state=run.state.value,
                problem=problem_of(run),
                **_of_job(run),
            )
        )
    return undeclared(home.name, tuple(expected))
