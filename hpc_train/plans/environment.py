"""The environment of the ranks: of the site, of the job, and variables that are always set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from hpc_train.base.errors import PlanError
from hpc_train.base.value import Value, within
from hpc_train.base.variable_names_and_secrets import ENV
from hpc_train.jobs.job import SourcedJob, Topology
from hpc_train.plans.binding import GpuOrder, gpu_order
from hpc_train.plans.context import Context, rule
from hpc_train.plans.distributed_backend import resolve_backend
from hpc_train.plans.lifecycle import flight_recorder
from hpc_train.plans.network import (
    ALT_READ,
    RDZV_COMPANIONS,
    RDZV_NETWORK,
    RDZV_VARIABLE,
    NetworkContext,
    network_context,
    network_settings,
    network_warnings,
    script_of,
)
from hpc_train.plans.plan import EnvChange, JobVar, Secret, Setting
from hpc_train.sites.batch_system import BatchSystem
from hpc_train.sites.partition import EnvBlock, PluginCheck, When
from hpc_train.sites.profile import SourcedSite

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
    plugin = _forced_plugin(context, found, facts)
    return JobEnvironment(
        backend=backend.value,
        variables={**found.env, **{n: s for n, s in handed_on.items() if n not in found.env}},
        env=tuple((name, _exported(setting.value)) for name, setting in found.env.items()),
        changes=changes,
        script=script_of(facts),
        plugin=plugin,
        settings={
            "backend": backend,
            **option,
            **({"gpu_order": order} if isinstance(order, Setting) else {}),
            **env_settings(found),
        },
        warnings=(
            *doubts,
            *network_warnings(facts),
            *_plugin_warnings(context, plugin),
            *found.warnings,
        ),
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


def _plugin_warnings(context: Context, plugin: PluginCheck | None) -> Iterator[str]:
    """Warn of a job that loads nothing with the plug-in, where its profile says what has it."""
    job, site = context.job.value, context.site.value
    if plugin is None or not plugin.provider or "LD_LIBRARY_PATH" in job.env:
        return
    modules = [
        f"module load {name}" for name in (*job.modules, *site.modules, *context.partition.modules)
    ]
    lines = [*modules, *site.setup, *job.setup, *job.directives]
    named = re.findall(r"\bmodule ([\w.-]+)", plugin.provider)
    loads = rf"\b(?:module|ml)\b.*\b(?:{'|'.join(map(re.escape, named)) or 'nccl'})\b"
    if any(re.search(rf"{loads}|ofi|[nr]ccl|uenv", line) for line in lines):
        return
    advice = f"modules: [{named[0]}]" if named else "container: {image: FILE}, modules or setup"
    yield (
        f"{plugin.name}={plugin.value} needs a plug-in of NCCL ({plugin.provider}), which neither "
        f"this job nor {site.name} loads: NCCL would stop with 'network {plugin.value} not found'; "
        f"{advice} in the job loads it"
    )


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


class Environment(Value, frozen=True, kw_only=True):
    """The variables of a job while they are resolved.

    `env` is exported unchanged, `changes` follow with their settings, `there` are set elsewhere,
    for example by a module. `ruled` are the names that a rule sets, not a file.
    """

    env: dict[str, Setting]
    ruled: tuple[str, ...] = ()
    changes: tuple[tuple[EnvChange, Setting], ...] = ()
    there: tuple[tuple[str, Setting], ...] = ()
    warnings: tuple[str, ...] = ()


def apply_blocks(environment: Environment, facts: NetworkContext, site: SourcedSite) -> Environment:
    """Apply the matching blocks to the environment, in order; a later one takes precedence."""
    for index, block in enumerate(site.value.env_blocks):
        unknown = _unknown(block.when, facts)
        if not meets(block.when, facts):
            continue
        if unknown:
            environment = _skipped(environment, f"env_blocks.{index}", unknown, site)
        elif block.when.nccl is not None and facts.nccl is None:
            environment = _of_unknown_nccl(environment, f"env_blocks.{index}", site)
        elif block.already_set_by is not None:
            environment = _leave(environment, block, f"env_blocks.{index}", site)
        else:
            environment = _write(environment, block, f"env_blocks.{index}", site)
    return environment


def meets(when: When, facts: NetworkContext) -> bool:
    """Return whether a block applies to a job; an unknown fact matches."""
    return (
        (when.nodes is None or within((facts.nodes,), when.nodes))
        and _among(facts.partition, when.partition)
        and _among(facts.launcher.name, when.launcher)
        and (when.runtime is None or not set(facts.runtimes).isdisjoint(_words(when.runtime)))
        and _among(facts.vendor, when.vendor)
        and (when.nccl is None or facts.nccl is None or within(facts.nccl, when.nccl))
        and when.container in (None, facts.container)
    )


def overlay(environment: Environment, own: dict[str, Setting]) -> Environment:
    """Apply the job's own variables, which take precedence over all others."""
    return msgspec.structs.replace(
        environment,
        env={**environment.env, **own},
        ruled=tuple(name for name in environment.ruled if name not in own),
        changes=tuple(pair for pair in environment.changes if pair[0].name not in own),
        there=tuple(pair for pair in environment.there if pair[0] not in own),
    )


def env_settings(environment: Environment) -> dict[str, Setting]:
    """Return the settings of the environment for `explain`, including variables set elsewhere."""
    known = (*environment.env.items(), *environment.there)
    shown = {f"env.{name}": setting for name, setting in known}
    for change, setting in environment.changes:
        words = ["unset"] if change.value is None else []
        words += [change.mode] if change.mode != "set" else []
        words += [change.scope] if change.scope != "job" else []
        key = base = f"env.{change.name} [{', '.join(words)}]"
        number = 1
        while key in shown:
            number += 1
            key = f"{base} {number}"
        shown[key] = setting
    return shown


def _unknown(when: When, facts: NetworkContext) -> str:
    """Return the keys without which a condition of a block is unknown."""
    if when.partition is not None and facts.partition is None:
        return "the job names no partition"
    if when.vendor is not None and facts.vendor is None:
        return "the profile does not say network.gpus"
    return ""


def _of_unknown_nccl(environment: Environment, key: str, site: SourcedSite) -> Environment:
    """Leave out what only some versions of NCCL need; `explain` prints the key to set."""
    block = site.value.env_blocks[int(key.partition(".")[2])]
    why = f"left out: it is for NCCL {block.when.nccl}, and the profile does not say network.nccl"
    found = tuple(
        (name, Setting(value=None, origin=site.near(f"{key}.when"), why=why, source=block.source))
        for name in block.env
        if name not in environment.env
    )
    return msgspec.structs.replace(environment, there=(*environment.there, *found))


def _among(value: str | None, wanted: str | tuple[str, ...] | None) -> bool:
    """An unknown value matches any."""
    return wanted is None or value is None or value in _words(wanted)


def _words(wanted: str | tuple[str, ...]) -> tuple[str, ...]:
    return (wanted,) if isinstance(wanted, str) else wanted


def _skipped(environment: Environment, key: str, unknown: str, site: SourcedSite) -> Environment:
    place = site.near(f"{key}.when")
    warning = f"{place}: {key} is left out, because {unknown}"
    return msgspec.structs.replace(environment, warnings=(*environment.warnings, warning))


def _setting(block: EnvBlock, value: object, origin: str) -> Setting:
    return Setting(value=value, origin=origin, why=block.why, source=block.source)


def _leave(environment: Environment, block: EnvBlock, key: str, site: SourcedSite) -> Environment:
    """Omit variables that are set elsewhere; their values are known to dependent rules."""
    reason = f"set by {block.already_set_by}, so the script does not set it"
    there = {
        name: Setting(
            value=str(value),
            origin=site.near(f"{key}.env.{name}"),
            why=f"{reason}; {block.why}" if block.why else reason,
            source=block.source,
        )
        for name, value in block.env.items()
    }
    kept = {name: setting for name, setting in environment.env.items() if name not in there}
    return msgspec.structs.replace(
        environment,
        env=kept,
        changes=tuple(pair for pair in environment.changes if pair[0].name not in there),
        there=(*(pair for pair in environment.there if pair[0] not in there), *there.items()),
    )


def _write(environment: Environment, block: EnvBlock, key: str, site: SourcedSite) -> Environment:
    for name in block.unset:
        change = EnvChange(name=name, value=None, scope=block.scope)
        setting = _setting(block, None, site.near(f"{key}.unset"))
        environment = _add(_forget(environment, change), change, setting)
    for name, value in block.env.items():
        change = EnvChange(
            name=name,
            value=str(value),
            mode=block.mode,
            scope=block.scope,
            separator=block.separator,
        )
        setting = _setting(block, str(value), site.near(f"{key}.env.{name}"))
        environment = _add(_forget(environment, change), change, setting)
    return environment


def _forget(environment: Environment, change: EnvChange) -> Environment:
    """Drop earlier settings: a set or unset replaces all, a default only the rules' value."""
    env, name, whole = dict(environment.env), change.name, change.scope == "job"
    replaces = change.mode == "set"
    if whole and (replaces or (change.mode == "default" and name in environment.ruled)):
        env.pop(name, None)
    return msgspec.structs.replace(
        environment,
        env=env,
        ruled=tuple(known for known in environment.ruled if known != name),
        changes=tuple(
            pair
            for pair in environment.changes
            if not (replaces and pair[0].name == name and (whole or pair[0].scope == change.scope))
        ),
        there=tuple(pair for pair in environment.there if pair[0] != name),
    )


def _add(environment: Environment, change: EnvChange, setting: Setting) -> Environment:
    """A plain value for the whole job is an ordinary export."""
    if change.scope == "job" and change.mode == "set" and change.value is not None:
        return msgspec.structs.replace(environment, env={**environment.env, change.name: setting})
    return msgspec.structs.replace(environment, changes=(*environment.changes, (change, setting)))
