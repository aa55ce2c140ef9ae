"""The environment of the ranks: of the site, of the job, and variables that are always set."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Value, within
from hpc_train.base.variable_names_and_secrets import ENV
from hpc_train.jobs.job import SourcedJob, Topology
from hpc_train.plans.binding import GpuOrder, gpu_order
from hpc_train.plans.context import Context, rule
from hpc_train.plans.lifecycle import flight_recorder
from hpc_train.plans.network import (
    ALT_READ,
    RDZV_COMPANIONS,
    RDZV_NETWORK,
    RDZV_VARIABLE,
    NetworkContext,
    network_context,
    network_settings,
    resolve_backend,
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
    backend = resolve_backend(context, topology)
    facts = network_context(context, topology, backend.value)
    order = gpu_order(context, topology, facts.vendor)
    found = _resolve_variables(facts, topology, order)
    # `or ()`: Python 3.10 has more than one empty tuple, and only the default's is omitted when a
    # plan is written, and thus from the name of a run.
    changes = tuple(change for change, _ in found.changes) or ()
    handed_on = {c.name: s for c, s in found.changes if c.scope == "job"}
    plugin = _forced_plugin(found, facts)
    network = {}
    # The option of sbatch that alt_read requires, wherever it comes from.
    if context.batch.network_option and ALT_READ in _protocols(found):
        network["network"] = rule(
            RDZV_NETWORK, f"{RDZV_VARIABLE}={ALT_READ} needs it, no other value does"
        )
    return JobEnvironment(
        backend=backend.value,
        variables={**found.env, **{n: s for n, s in handed_on.items() if n not in found.env}},
        env=tuple(
            (name, one.value if isinstance(one.value, JobVar) else str(one.value))
            for name, one in found.env.items()
        ),
        changes=changes,
        script=script_of(facts),
        plugin=plugin,
        settings={
            "backend": backend,
            **network,
            **({"gpu_order": order} if isinstance(order, Setting) else {}),
            **_settings(found),
        },
        warnings=(*_plugin_warnings(context, plugin), *found.warnings),
    )


def _forced_plugin(variables: Variables, facts: NetworkContext) -> PluginCheck | None:
    """Return the plug-in that must be on the node; the job's own word needs no check.

    The libraries in an image cannot be seen from the host.
    """
    job, provider = facts.context.job.value, facts.network.plugin_from or ""
    if job.container is not None or not facts.context.batch.starter:
        return None
    for name in ("NCCL_NET_PLUGIN", "NCCL_NET"):
        setting = variables.env.get(name)
        if setting and name not in job.env and setting.value not in _BUILT_IN:
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


def _resolve_variables(facts: NetworkContext, topology: Topology, order: GpuOrder) -> Variables:
    """Return the variables; precedence: job, blocks of the site, env of the site, rules."""
    context, job, site = facts.context, facts.context.job, facts.context.site
    recorder = flight_recorder(context) if _NCCL.intersection(facts.runtimes) else {}
    settings = {**_rules(context, topology), **recorder}
    settings |= {**network_settings(facts), **_way_out(site)}
    ruled = settings.keys() - site.value.env.keys() - _way_out(site).keys()
    for name, value in site.value.env.items():
        why = site.value.env_why.get(name, "")
        settings[name] = Setting(value=value, origin=site.origin(f"env.{name}"), why=why)
    found = Variables(settings, ruled)
    found.changes += (order,) if isinstance(order, tuple) else ()
    for index in range(len(site.value.env_blocks)):
        _apply_block(found, facts, index)
    for name, value in job.value.env.items():
        found.forget(name)
        found.env[name] = Setting(value=value, origin=job.origin(f"env.{name}"))
    if ALT_READ not in _protocols(found):
        for name in found.ruled.intersection(RDZV_COMPANIONS):
            found.env.pop(name, None)
    return found


def _protocols(variables: Variables) -> set[str]:
    """Return the possible protocols of the ranks."""
    there = [*variables.env.items(), *variables.there.items()]
    settings = [*there, *((change.name, setting) for change, setting in variables.changes)]
    return {str(s.value) for name, s in settings if name == RDZV_VARIABLE}


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
    unbuffered = "after a crash, the log must still contain the last line"
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


class Variables:
    """The variables of a job while they are resolved.

    `env` is exported unchanged, `changes` follow with their settings, `there` are set elsewhere,
    for example by a module. `ruled` are the names that a rule sets, not a file.
    """

    def __init__(self, env: dict[str, Setting], ruled: set[str]) -> None:
        self.env, self.ruled = env, ruled
        self.changes: list[tuple[EnvChange, Setting]] = []
        self.there: dict[str, Setting] = {}
        self.warnings: list[str] = []

    def forget(self, name: str) -> None:
        """Drop what was said of a variable before, but its export."""
        self.ruled.discard(name)
        self.there.pop(name, None)
        self.changes = [pair for pair in self.changes if pair[0].name != name]

    def change(self, change: EnvChange, setting: Setting) -> None:
        """A set replaces earlier settings, a default only the rules' value."""
        name, replaces = change.name, change.mode == "set"
        if replaces or (change.mode == "default" and name in self.ruled):
            self.env.pop(name, None)
        if replaces:
            self.forget(name)
            self.env[name] = setting
        else:
            self.ruled.discard(name)
            self.there.pop(name, None)
            self.changes.append((change, setting))


def meets(when: When, facts: NetworkContext) -> bool:
    """Return whether a block applies to a job; an unknown fact matches."""
    return (
        (when.nodes is None or within((facts.nodes,), when.nodes))
        and _among(facts.context.job.value.partition, when.partition)
        and _among(facts.context.launcher.name, when.launcher)
        and (when.runtime is None or not set(facts.runtimes).isdisjoint(_words(when.runtime)))
        and _among(facts.vendor, when.vendor)
        and when.container in (None, facts.context.job.value.container is not None)
    )


def _settings(variables: Variables) -> dict[str, Setting]:
    """Return the settings of the environment for `explain`, including variables set elsewhere."""
    shown = {f"env.{name}": s for name, s in {**variables.env, **variables.there}.items()}
    for change, setting in variables.changes:
        key = base = f"env.{change.name} [{change.mode if change.scope == 'job' else change.scope}]"
        number = 1
        while key in shown:
            number += 1
            key = f"{base} {number}"
        shown[key] = setting
    return shown


def _among(value: str | None, wanted: str | tuple[str, ...] | None) -> bool:
    """An unknown value matches any."""
    return wanted is None or value is None or value in _words(wanted)


def _words(wanted: str | tuple[str, ...]) -> tuple[str, ...]:
    return (wanted,) if isinstance(wanted, str) else wanted


def _apply_block(found: Variables, facts: NetworkContext, index: int) -> None:
    """Apply a block of the site if it matches; it takes precedence over earlier ones."""
    site, key = facts.context.site, f"env_blocks.{index}"
    block = site.value.env_blocks[index]
    if not meets(block.when, facts):
        return
    unknown = ""
    if block.when.partition is not None and facts.context.job.value.partition is None:
        unknown = "the job names no partition"
    elif block.when.vendor is not None and facts.vendor is None:
        unknown = "the profile does not state network.gpus"
    if unknown:
        found.warnings.append(f"{site.near(f'{key}.when')}: {key} is left out, because {unknown}")
    elif block.already_set_by is not None:
        _leave(found, block, key, site)
    else:
        for name, value in block.env.items():
            setting = Setting(
                value=str(value),
                origin=site.near(f"{key}.env.{name}"),
                why=block.why,
                source=block.source,
            )
            found.change(EnvChange(name=name, value=str(value), mode=block.mode), setting)


def _leave(found: Variables, block: EnvBlock, key: str, site: SourcedSite) -> None:
    """Omit variables that are set elsewhere; their values are known to dependent rules."""
    reason = f"set by {block.already_set_by}, so the script does not set it"
    why = f"{reason}; {block.why}" if block.why else reason
    for name, value in block.env.items():
        found.env.pop(name, None)
        found.forget(name)
        origin = site.near(f"{key}.env.{name}")
        found.there[name] = Setting(value=str(value), origin=origin, why=why, source=block.source)
