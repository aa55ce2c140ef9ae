"""The environment of the ranks: of the site, of the job, and variables that are always set."""

from __future__ import annotations

from typing import Any

import msgspec

from hpc_train.errors import PlanError
from hpc_train.model.batch_system import BatchSystem
from hpc_train.model.job import SourcedJob
from hpc_train.model.launchers_and_preflight import PluginCheck
from hpc_train.model.plan import EnvChange, JobVar, Secret, Setting, Topology
from hpc_train.model.site import SourcedSite
from hpc_train.model.value import Value
from hpc_train.model.variable_names_and_secrets import ENV
from hpc_train.plans.binding import GpuOrder, gpu_order
from hpc_train.plans.context import Context, rule
from hpc_train.plans.distributed_backend import resolve_backend
from hpc_train.plans.env_blocks import Environment, apply_blocks, env_settings, overlay
from hpc_train.plans.lifecycle import flight_recorder
from hpc_train.plans.network_context import NetworkContext, network_context
from hpc_train.plans.network_variables import (
    ALT_READ,
    RDZV_COMPANIONS,
    RDZV_NETWORK,
    RDZV_VARIABLE,
    network_settings,
    network_warnings,
    script_of,
)

# Networks of NCCL itself, and its word for no plug-in.
_BUILT_IN = ("IB", "Socket", "none")
_NCCL = frozenset({"nccl", "rccl"})


class JobEnvironment(Value, frozen=True, kw_only=True):
    """The variables of a plan; `variables` are those that each rank must get.

    `script` is the vendor's script, which is sourced before.
    """

    backend: str
    variables: dict[str, Setting]
    env: tuple[tuple[str, str | JobVar], ...]
    changes: tuple[EnvChange, ...]
    script: str | None
    plugin: PluginCheck | None
    settings: dict[str, Setting]
    warnings: tuple[str, ...]


def resolve_environment(context: Context, topology: Topology) -> JobEnvironment:
    """Resolve backend and variables.

    Raises:
        PlanError: the backend does not support the job.
    """
    backend, doubts = resolve_backend(context, topology)
    facts = network_context(context, topology, backend.value)
    order = gpu_order(context, topology, facts.vendor)
    found = resolve_env(context, topology, facts, order)
    # `or ()`: Python 3.10 has more than one empty tuple, and only the default's is omitted when a
    # plan is written, and thus from the name of a run.
    changes = tuple(change for change, _ in found.changes) or ()
    handed_on = {c.name: s for c, s in found.changes if c.scope == "job" and c.value is not None}
    option = network_option(found, facts)
    return JobEnvironment(
        backend=backend.value,
        variables={**found.env, **{n: s for n, s in handed_on.items() if n not in found.env}},
        env=tuple((name, _exported(setting.value)) for name, setting in found.env.items()),
        changes=changes,
        script=script_of(facts),
        plugin=_forced_plugin(context, found, facts),
        settings={
            "backend": backend,
            **option,
            **({"gpu_order": order} if isinstance(order, Setting) else {}),
            **env_settings(found),
        },
        warnings=(*doubts, *network_warnings(facts), *found.warnings),
    )


def _forced_plugin(
    context: Context, environment: Environment, facts: NetworkContext
) -> PluginCheck | None:
    """Return the plug-in that must be on the node; the job's own word needs no check.

    The libraries in an image cannot be seen from the host.
    """
    provider = facts.network.plugin_from or ""
    for name in ("NCCL_NET_PLUGIN", "NCCL_NET"):
        setting = environment.env.get(name)
        if setting is None or name in context.job.value.env or facts.container:
            continue
        if facts.batch.starter and setting.value not in _BUILT_IN:
            return PluginCheck(name=name, value=str(setting.value), provider=provider)
    return None


def _exported(value: Any) -> str | JobVar:
    return value if isinstance(value, JobVar) else str(value)


def resolve_env(
    context: Context, topology: Topology, facts: NetworkContext, order: GpuOrder = None
) -> Environment:
    """Return the variables; precedence: job, blocks of the site, env of the site, rules."""
    job, site = context.job, context.site
    recorder = flight_recorder(context) if _NCCL.intersection(facts.runtimes) else {}
    settings = {**_rules(context, topology), **recorder}
    settings |= {**network_settings(facts, site), **_way_out(site)}
    given = {**site.value.env, **_way_out(site)}
    ruled = tuple(name for name in settings if name not in given)
    for name, value in site.value.env.items():
        why = site.value.env_why.get(name, "")
        settings[name] = Setting(value=value, origin=site.origin(f"env.{name}"), why=why)
    changes = (order,) if isinstance(order, tuple) else ()
    environment = Environment(env=settings, ruled=ruled, changes=changes)
    environment = apply_blocks(environment, facts, site)
    own = {
        name: Setting(value=value, origin=job.origin(f"env.{name}"))
        for name, value in job.value.env.items()
    }
    return without_companions(overlay(environment, own))


def network_option(environment: Environment, facts: NetworkContext) -> dict[str, Setting]:
    """Return the option of sbatch that alt_read requires, independent of its origin."""
    chosen = _protocols(environment)
    if not facts.batch.network_option:
        return {}
    if ALT_READ in chosen:
        why = f"{RDZV_VARIABLE}={ALT_READ} needs it, and it alone"
        return {"network": rule(RDZV_NETWORK, why)}
    if not facts.network.alt_read or not chosen:
        return {}
    # The last one takes precedence, as in the script.
    setting = list(chosen.values())[-1]
    value = "unset" if setting.value is None else repr(str(setting.value))
    companions = ", ".join(RDZV_COMPANIONS)
    why = f"left out, with {companions}: {RDZV_VARIABLE} is {value}, not {ALT_READ}"
    return {"network": Setting(value=None, origin=setting.origin, why=why)}


def without_companions(environment: Environment) -> Environment:
    """Drop the rules' variables for alt_read if another protocol is selected."""
    if ALT_READ in _protocols(environment):
        return environment
    dropped = set(RDZV_COMPANIONS).intersection(environment.ruled)
    kept = {name: s for name, s in environment.env.items() if name not in dropped}
    return msgspec.structs.replace(environment, env=kept)


def _protocols(environment: Environment) -> dict[str, Setting]:
    """Return the possible protocols of the ranks, in the order of the script."""
    settings = [*environment.env.items(), *(p for p in environment.there if p[1].value is not None)]
    settings += [(change.name, setting) for change, setting in environment.changes]
    return {str(s.value): s for name, s in settings if name == RDZV_VARIABLE}


def _way_out(site: SourcedSite) -> dict[str, Setting]:
    """Variables for internet access, or for offline mode if the node has none."""
    internet = site.value.internet
    if internet is None:
        return {}
    why = f"internet of the nodes: {internet.access}"
    return {
        name: Setting(value=value, origin=site.origin(f"internet.env.{name}"), why=why)
        for name, value in internet.env.items()
    }


def _rules(context: Context, topology: Topology) -> dict[str, Setting]:
    threads = "cores of the rank; unset, torchrun would give 1 and others all cores"
    cores, each = topology.cpus_per_task, context.partition.threads_per_core or 1
    # With the hint, the CPUs of a job are cores.
    if cores and each > 1 and context.site.value.directives.get("hint") != "nomultithread":
        cores = max(1, cores // each)
        threads = f"cores of the rank, whose {topology.cpus_per_task} CPUs are hardware threads"
    unbuffered = "a log that a crash cut short must still hold the last line"
    return {
        "OMP_NUM_THREADS": rule(cores or JobVar(name="cpus_per_rank"), threads),
        "PYTHONUNBUFFERED": rule(1, unbuffered),
    }


def resolve_secrets(job: SourcedJob, batch: BatchSystem) -> tuple[Secret, ...]:
    """Return the secret variables: inherited, or read from a file.

    Raises:
        PlanError: a job of the scheduler inherits no variable.
    """
    for name, where in job.value.secrets.items():
        if where == ENV and not batch.inherits:
            raise PlanError(
                f"{job.near(f'secrets.{name}')}: a job of {batch.title} does not have the "
                f"variables of the shell that submits it, and {batch.submit} would show {name} to "
                "others",
                f"put it into a file of mode 0600 and write its path, e.g. ~/.{name.lower()}",
            )
    return tuple(
        Secret(name=name, file=None if where == ENV else where)
        for name, where in job.value.secrets.items()
    )


def secret_settings(job: SourcedJob) -> dict[str, Setting]:
    """Return where each secret comes from; its value is never printed."""
    why = {True: "from the shell you submit from", False: "read by the job, mode 0600"}
    return {
        f"secrets.{name}": Setting(
            value=where, origin=job.near(f"secrets.{name}"), why=why[where == ENV]
        )
        for name, where in job.value.secrets.items()
    }
