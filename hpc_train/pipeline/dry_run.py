"""Dry run of a submission: its messages, and the answer of sbatch --test-only."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hpc_train.model.plan import LaunchPlan
from hpc_train.model.submission import Script, SlurmEndpoint
from hpc_train.pipeline.checkpoint_owner import owner_notices
from hpc_train.pipeline.prepared import Prepared, PreparedSite
from hpc_train.pipeline.run_states import executor_of
from hpc_train.pipeline.study_precision import preview
from hpc_train.pipeline.submission_checks import check_checkpoint_folders, check_start
from hpc_train.pipeline.submit import SubmitOptions
from hpc_train.pipeline.submit_by_site import site_notices
from hpc_train.pipeline.submit_runs import cluster_of
from hpc_train.plans.cost import check_budget, cost_of
from hpc_train.submissions.base import ExecutorOptions


def dry_run(prepared: Prepared, root: Path, options: SubmitOptions) -> Iterator[str]:
    """Yield the messages of `submit`, then the answer of `sbatch --test-only` for each script.

    The runs would be below the results folder `root`, where nothing is written.

    Raises:
        HpcTrainError: the submission would be refused before any sbatch.
    """
    check_checkpoint_folders(prepared)
    plans = {site.name: _plans(prepared, site) for site in prepared.sites}
    check_budget(cost_of([one for own in plans.values() for one in own]), options.max_gpu_hours)
    steps = any(site.batch.steps for site in prepared.sites)
    if not steps:
        check_start(prepared)
        for site in prepared.sites:
            if plans[site.name]:
                _ask(root / prepared.name, site, plans[site.name])
    # Existing runs would be kept; whether there are any depends on the results folder.
    whole = " for the whole study" if prepared.study else ""
    for site in prepared.sites:
        several = len(prepared.sites) > 1
        yield from site_notices(site.site.value, plans[site.name], whole, at_site=several)
    yield from owner_notices(prepared)
    yield from preview(prepared)
    if not steps:
        return
    if not shutil.which("sbatch"):
        yield "sbatch is not installed here, so it was not tested whether the cluster accepts this"
        return
    check_start(prepared)
    for site in prepared.sites:
        if site.batch.steps and plans[site.name]:
            cluster = cluster_of(site.site.value, plans[site.name][0])
            for name, script in _scripts(prepared, site):
                yield f"sbatch --test-only{name}: {_answer(cluster, script)}"


def _ask(home: Path, site: PreparedSite, plans: list[LaunchPlan]) -> None:
    """Ask the site as `submit` does, without its limits: they hold for runs that are missing."""
    executor_of(site.site.value.scheduler).ready(home, plans, ExecutorOptions(site=site.site))


def _plans(prepared: Prepared, site: PreparedSite) -> list[LaunchPlan]:
    repetitions = prepared.study.spec.repetitions if prepared.study else 1
    return [point.plan for point in prepared.points_at(site) for _ in range(repetitions)]


def _scripts(prepared: Prepared, site: PreparedSite) -> Iterator[tuple[str, Script]]:
    if prepared.allocation is not None:
        yield " of the allocation", prepared.allocation
        return
    for point in prepared.points_at(site):
        yield (f" {point.stem}" if prepared.study else ""), point.script


def _answer(cluster: SlurmEndpoint, script: Script) -> str:
    with tempfile.TemporaryDirectory(prefix="hpctrain-") as folder:
        path = Path(folder, "job.sbatch")
        path.write_text(script.text, encoding="utf-8")
        # Other schedulers need none of Slurm's modules.
        from hpc_train.submissions.slurm.sbatch_test_only import test_only

        return test_only(cluster, path)
