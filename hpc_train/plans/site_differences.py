"""How a site differs from what a job may expect: other defaults than Slurm's, Open MPI 5."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.partition import Preemption
from hpc_train.model.plan import Setting
from hpc_train.model.site import SourcedSite
from hpc_train.model.version_ranges import at_least
from hpc_train.plans.context import Context


def default_settings(context: Context) -> dict[str, Setting]:
    """Return the defaults of the site that may be unexpected for a job."""
    return {
        **_default_time(context),
        **_requeue(context.site),
        **_steps(context.site),
        **_cores(context.site),
        **_preemption(context),
    }


def default_warnings(context: Context) -> Iterator[str]:
    """Warn of a default time limit, and of options that the scheduler does not have."""
    yield from _without_options(context)
    site, partition = context.site, context.partition
    listed = context.queue.partition is not None
    where = f"{site.value.name} {partition.name}" if listed else site.value.name
    for limit in _default_time(context).values():
        yield (
            f"no time limit: {where} ends the job after {limit.value} ({limit.origin}); "
            "give it a time"
        )


def _without_options(context: Context) -> Iterator[str]:
    """Name what the job requests of a queue; where there is none, the same job runs without it."""
    job, site = context.job, context.site.value
    keys = [key for key in ("qos", "constraint") if getattr(job.value, key) is not None]
    keys += [f"directives.{name}" for name in job.value.directives]
    if keys and not context.batch.directives:
        yield (
            f"{job.near(keys[0])}: {site.name} (scheduler {site.scheduler}) has no option for "
            f"{', '.join(keys)}: the job runs without"
        )


def _default_time(context: Context) -> dict[str, Setting]:
    limit = context.partition.default_time
    if limit is None or context.job.value.resources.time is not None:
        return {}
    origin, why = context.origin("default_time"), "the job asks for no time"
    return {"default_time": Setting(value=limit, origin=origin, why=why)}


def _requeue(site: SourcedSite) -> dict[str, Setting]:
    lifecycle = site.value.lifecycle
    if lifecycle is None or lifecycle.requeue is None:
        return {}
    does = "starts the job again" if lifecycle.requeue else "does not start the job again"
    why = f"Slurm {does} when a node is lost, unless sbatch is told otherwise"
    why = f"{why}; {lifecycle.note}" if lifecycle.note else why
    return {
        "requeue": Setting(
            value=lifecycle.requeue, origin=site.origin("lifecycle.requeue"), why=why
        )
    }


def _steps(site: SourcedSite) -> dict[str, Setting]:
    """psid differs from srun in options that a step only inherits."""
    if site.value.step_manager == "slurmd":
        return {}
    why = "not slurmd: each srun is told its cores, tasks and nodes, and inherits none of them"
    origin = site.origin("step_manager")
    return {"step_manager": Setting(value=site.value.step_manager, origin=origin, why=why)}


def _cores(site: SourcedSite) -> dict[str, Setting]:
    if site.value.cpu_request == "allowed":
        return {}
    why = "cores come with the nodes or GPUs; only the job's steps count them"
    return {"cpu_request": Setting(value="forbidden", origin=site.origin("cpu_request"), why=why)}


def _preemption(context: Context) -> dict[str, Setting]:
    rules = context.partition.preemption
    if rules is None:
        return {}
    origin = context.near("preemption")
    return {"preemption": Setting(value="possible", origin=origin, why=_ended(rules))}


def _ended(rules: Preemption) -> str:
    words = ["the job may be ended for another's sake"]
    words += [f"not in its first {rules.safe}"] if rules.safe else []
    words += [f"{rules.grace} after the first signal"] if rules.grace else []
    words += [] if rules.warning else ["without any signal before"]
    if not rules.warning:
        words += ["ranks have only the seconds of Slurm's KillWait to save"]
    return "; ".join(words)


# Pattern of an option or a variable's name -> its replacement in Open MPI 5.
_GONE = {
    r"(OMPI_MCA_)?orte_tag_output": "PRTE_MCA_output=tag, or --output tag",
    r"(OMPI_MCA_)?orte_base_help_aggregate": "OMPI_MCA_opal_base_help_aggregate",
    r"orte_ess_base_stream_buffering": "OMPI_MCA_ompi_stream_buffering",
    r"(OMPI_MCA_)?oob_tcp_if_(in|ex)clude": "PRTE_MCA_prte_if_include",
    r"(OMPI_MCA_)?(orte|plm|rmaps|ras|oob|ess)_\w+": "PRTE_MCA_…, its runtime is PRRTE",
    r"PRRTE_MCA_\w+": "PRTE_MCA_…, with one R",
    r"--?(npernode|npersocket|cpus-per-proc|bind-to-core)": "--map-by ppr:N:node:PE=M, --bind-to",
}


def openmpi_warnings(
    context: Context, env: Mapping[str, Setting], mpi: str | None
) -> tuple[str, ...]:
    """Warn of options that Open MPI 5 no longer has and silently ignores; `mpi` is srun's type."""
    if not at_least(context.site.value.launchers.openmpi, "5"):
        return ()
    return tuple(_old_words(context, env, mpi))


def _old_words(context: Context, env: Mapping[str, Setting], mpi: str | None) -> Iterator[str]:
    site, launcher = context.site, context.launcher
    launchers = site.value.launchers
    if launcher.mpi and launcher.through_srun and mpi == "pmi2":
        yield f"{site.origin('launchers.mpi')}: Open MPI 5 has no PMI-2; use pmix"
    places = [(word, site.near("launchers.mpirun_args")) for word in launchers.mpirun_args]
    places = places if launcher.open_mpi else []
    for word, origin in [*places, *((name, setting.origin) for name, setting in env.items())]:
        for pattern, instead in _GONE.items():
            if re.fullmatch(pattern, word):
                yield f"{origin}: Open MPI 5 has no {word}: {instead}"
                break
