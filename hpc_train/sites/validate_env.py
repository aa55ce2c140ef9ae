"""Validation of a profile's variables and shell lines."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.errors import SiteProfileError
from hpc_train.model.env_names import is_reserved, is_variable, why_not_empty
from hpc_train.model.network import EnvBlock
from hpc_train.model.secret import KEPT, looks_secret, named_by_users, secret_in
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Sourced

Site = Sourced[SiteProfile]


def check_variables(site: Site) -> None:
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


def _check_block(site: Site, block: EnvBlock, key: str) -> None:
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


def _check(site: Site, key: str, name: str, value: object) -> None:
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


def _texts(site: Site) -> Iterator[tuple[str, str]]:
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
