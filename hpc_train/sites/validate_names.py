"""Validation of the names of options, launchers and qos in a profile."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.errors import SiteProfileError, nearest
from hpc_train.model.partition import ANY
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Sourced
from hpc_train.registry import BUILT_IN, names
from hpc_train.sites.locked_keys import locked_keys
from hpc_train.sites.merge import Part
from hpc_train.slurm_options import directive_problem, sbatch_grammar

Site = Sourced[SiteProfile]

# Launchers of other tools; a profile may state why they are forbidden.
_FOREIGN = ("mpiexec", "torchrun_jsc")


def check_words(site: Site) -> None:
    """Refuse options, launchers and qualities of service that do not exist.

    Raises:
        SiteProfileError: with file:line and the nearest name.
    """
    for name, value in site.value.directives.items():
        problem = directive_problem(name, value)
        if problem:
            place = site.near(f"directives.{name}")
            raise SiteProfileError(f"{place}: directives.{name}: {problem[0]}", problem[1])
    for key, option in _options(site.value):
        known = sbatch_grammar().long
        if option not in known:
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


def _check_launchers(site: Site) -> None:
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


def _check_qos(site: Site) -> None:
    known = [qos.name for qos in site.value.qos]
    for index, partition in enumerate(site.value.partitions):
        qos = partition.select.qos if partition.select else None
        if qos is not None and known and qos not in known and ANY not in known:
            key = f"partitions.{index}.select.qos"
            raise SiteProfileError(
                f"{site.near(key)}: {key}: unknown qos {qos!r}{nearest(qos, known)}; "
                f"known: {', '.join(known)}"
            )
