"""A site's env_blocks: which blocks apply to a job, and their effect on its environment."""

from __future__ import annotations

import msgspec

from hpc_train.model.plan import EnvChange, Setting
from hpc_train.model.site import SourcedSite
from hpc_train.model.site_network import EnvBlock, When
from hpc_train.model.value import Value
from hpc_train.model.version_ranges import within
from hpc_train.plans.network_context import NetworkContext


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
