"""Validation of names in a profile: options, launchers, qos and environment variables."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.errors import SiteProfileError, nearest
from hpc_train.model.partition import ANY
from hpc_train.model.site import SiteProfile, SourcedSite
from hpc_train.model.site_network import EnvBlock
from hpc_train.model.variable_names_and_secrets import (
    KEPT,
    is_reserved,
    is_variable,
    looks_secret,
    named_by_users,
    secret_in,
    why_not_empty,
)
from hpc_train.registry import BUILT_IN, find_batch_system, names
from hpc_train.sites.merge import Part, locked_keys
from hpc_train.slurm_options import directive_problem, sbatch_grammar

# Launchers of other tools; a profile may state why they are forbidden.
_FOREIGN = ("torchrun_jsc",)


def check_words(site: SourcedSite) -> None:
    """Refuse options, launchers and qualities of service that do not exist.

    Raises:
        SiteProfileError: with file:line and the nearest name.
    """
    plugins = site.value.plugin_options
    for name in plugins:
        if name in sbatch_grammar().long:
            place = site.near(f"plugin_options.{name}")
            raise SiteProfileError(
                f"{place}: plugin_options: --{name} is an option of Slurm or pyxis", "leave it out"
            )
    letters = find_batch_system(site.value.scheduler).letters
    for name, value in site.value.directives.items():
        problem = directive_problem(name, value, plugins)
        if problem:
            place = site.near(f"directives.{name}")
            raise SiteProfileError(f"{place}: directives.{name}: {problem[0]}", problem[1])
    for key, option in _options(site.value):
        known = sbatch_grammar().long
        if letters and not option[1:]:
            continue
        if option not in known and option not in plugins:
            near = nearest(option.lstrip("-").replace("_", "-"), known)
            raise SiteProfileError(
                f"{site.near(key)}: {key}: sbatch has no option {option!r}{near}",
                "write long names, without leading dashes",
            )
    for index, key in enumerate(site.value.required):
        if key in site.value.forbidden:
            raise SiteProfileError(
                f"{site.near(f'required.{index}')}: {key} is required, but forbidden "
                f"({site.near(f'forbidden.{key}')})"
            )
    _check_launchers(site)
    _check_qos(site)
    locked_keys(Part({"locked": list(site.value.locked) or None}, site.origins))


def _options(profile: SiteProfile) -> Iterator[tuple[str, str]]:
    for option in profile.forbidden:
        yield f"forbidden.{option}", option
    for name, storage in profile.storage.items():
        for option in storage.request:
            yield f"storage.{name}.request.{option}", option


def _check_launchers(site: SourcedSite) -> None:
    launchers = site.value.launchers
    said = [(key, name) for key in ("forbidden", "warned") for name in getattr(launchers, key)]
    # The search for plug-ins costs more than everything else in a profile.
    if all(name in (*BUILT_IN["launchers"], *_FOREIGN) for _, name in said):
        return
    known = (*names("launchers"), *_FOREIGN)
    for key, name in said:
        if name not in known:
            raise SiteProfileError(
                f"{site.near(f'launchers.{key}.{name}')}: launchers.{key}: unknown launcher "
                f"{name!r}{nearest(name, known)}; known: {', '.join(known)}"
            )


def _check_qos(site: SourcedSite) -> None:
    known = [qos.name for qos in site.value.qos]
    for index, partition in enumerate(site.value.partitions):
        qos = partition.select.qos if partition.select else None
        if qos is not None and known and qos not in known and ANY not in known:
            key = f"partitions.{index}.select.qos"
            raise SiteProfileError(
                f"{site.near(key)}: {key}: unknown qos {qos!r}{nearest(qos, known)}; "
                f"known: {', '.join(known)}"
            )


def check_variables(site: SourcedSite) -> None:
    """Refuse invalid names, variables that the script sets itself, and secrets.

    Raises:
        SiteProfileError: with file:line; the message does not contain the secret.
    """
    for name, value in site.value.env.items():
        _check(site, "env", name, value)
    for name, value in (site.value.internet.env if site.value.internet else {}).items():
        _check(site, "internet.env", name, value)
    for index, block in enumerate(site.value.env_blocks):
        _check_block(site, block, f"env_blocks.{index}")
    for key, text in _texts(site):
        found = secret_in(key, text)
        if found:
            raise SiteProfileError(f"{site.near(key)}: {found[0]}", named_by_users(found[1]))


def _check_block(site: SourcedSite, block: EnvBlock, key: str) -> None:
    for name in filter(is_reserved, (*block.env, *block.unset)):
        raise SiteProfileError(f"{site.near(key)}: {key}: the script or bash sets {name} itself")
    for name, value in block.env.items():
        # Prepending or appending an empty value has no effect.
        _check(site, f"{key}.env", name, value if block.mode in ("set", "default") else "x")
        if name in block.unset:
            place = site.near(f"{key}.env.{name}")
            raise SiteProfileError(f"{place}: {key} sets and unsets {name}")
    for name in filter(why_not_empty, block.unset):
        place = site.near(f"{key}.unset")
        raise SiteProfileError(f"{place}: {key}.unset: {name}: {why_not_empty(name)}")


def _check(site: SourcedSite, key: str, name: str, value: object) -> None:
    place = site.near(f"{key}.{name}")
    if not is_variable(name):
        raise SiteProfileError(f"{place}: {name!r} is not a name of an environment variable")
    if looks_secret(name, value):
        raise SiteProfileError(
            f"{place}: {key}.{name} looks like a secret, {KEPT}", named_by_users(name)
        )
    if is_reserved(name):
        raise SiteProfileError(f"{place}: {key}.{name}: the script or bash sets {name} itself")
    if value == "" and why_not_empty(name):
        raise SiteProfileError(f"{place}: {key}.{name} is empty: {why_not_empty(name)}")


def _texts(site: SourcedSite) -> Iterator[tuple[str, str]]:
    """Yield all texts that are written unchanged, with their keys."""
    profile, boxes = site.value, site.value.containers
    values = [("env", profile.env)]
    values += [(f"env_blocks.{i}.env", block.env) for i, block in enumerate(profile.env_blocks)]
    for key, env in values:
        for name, value in env.items():
            yield f"{key}.{name}", str(value)
    lines = {
        "setup": profile.setup,
        "launchers.srun_args": profile.launchers.srun_args,
        "launchers.mpirun_args": profile.launchers.mpirun_args,
        "containers.setup": boxes.setup if boxes else (),
        "containers.args": boxes.args if boxes else (),
    }
    for key, texts in lines.items():
        for number, text in enumerate(texts):
            yield f"{key}.{number}", text
