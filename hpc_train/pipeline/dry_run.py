"""Dry run of a submission: its messages, and the answer of sbatch --test-only."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.model.plan import LaunchPlan
from hpc_train.model.submission import Script, SlurmEndpoint
from hpc_train.pipeline.render import Prepared
from hpc_train.pipeline.run_states import executor_of
from hpc_train.pipeline.study_precision import preview
from hpc_train.pipeline.submission_checks import check_start
from hpc_train.pipeline.submit import SubmitOptions
from hpc_train.pipeline.submit_runs import cluster_of
from hpc_train.plans.cost import check_budget, cost_line, cost_of, price_of_nodes
from hpc_train.submissions.slurm.sbatch_test_only import test_only


def dry_run(prepared: Prepared, options: SubmitOptions) -> Iterator[str]:
    """Yield the messages of `submit`, then the answer of `sbatch --test-only` for each script.

    Raises:
        HpcTrainError: the submission would be refused before any sbatch.
    """
    repetitions = prepared.study.spec.repetitions if prepared.study else 1
    plans = [point.plan for point in prepared.points for _ in range(repetitions)]
    cost = cost_of(plans)
    check_budget(cost, options.max_gpu_hours)
    if not prepared.batch.steps:
        check_start(prepared)
        if not prepared.batch.this_machine:
            yield _cost_text(prepared, plans)
        yield from preview(prepared)
        return
    yield from executor_of(prepared.site.value.scheduler).notices(plans[0])
    yield _cost_text(prepared, plans)
    yield from preview(prepared)
    if not shutil.which("sbatch"):
        yield "sbatch is not installed here, so it was not tested whether the cluster accepts this"
        return
    check_start(prepared)
    cluster = cluster_of(prepared.site.value, plans[0])
    for name, script in _scripts(prepared):
        yield f"sbatch --test-only{name}: {_answer(cluster, script)}"


def _cost_text(prepared: Prepared, plans: Sequence[LaunchPlan]) -> str:
    """Existing runs would be kept; whether there are any depends on the results folder."""
    whole = " for the whole study" if prepared.study else ""
    site = prepared.site.value
    return f"cost{whole}: {cost_line(cost_of(plans), site.report, price_of_nodes(plans, site))}"


def _scripts(prepared: Prepared) -> Iterator[tuple[str, Script]]:
    if prepared.allocation is not None:
        yield " of the allocation", prepared.allocation
        return
    for point in prepared.points:
        yield (f" {point.stem}" if prepared.study else ""), point.script


def _answer(cluster: SlurmEndpoint, script: Script) -> str:
    with tempfile.TemporaryDirectory(prefix="hpctrain-") as folder:
        path = Path(folder, "job.sbatch")
        path.write_text(script.text, encoding="utf-8")
        return test_only(cluster, path)
