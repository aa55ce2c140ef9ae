"""Find a site profile on the search path and decode it.

Search path: `./`, `./site_profiles`, the folders of `$HPCTRAIN_SITE_PATH`,
`~/.config/hpctrain`, `/etc/hpctrain`, the package. The first file of that name wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from hpc_train.assets import profile_folder, site_folders
from hpc_train.decode import decode
from hpc_train.errors import SiteProfileError, UnknownNameError
from hpc_train.model.sbatch import directive_problem
from hpc_train.model.site import Partition, SiteProfile
from hpc_train.model.value import Sourced
from hpc_train.sites.machine import Machine, this_machine
from hpc_train.sites.network import check_blocks, check_network
from hpc_train.sites.rendezvous import check_rendezvous
from hpc_train.sites.variables import check_variables
from hpc_train.yamlfile import lookup, read


def load_site(name: str, machine: Machine | None = None) -> Sourced[SiteProfile]:
    """Load the profile `name`, or the file when it is a path to one.

    A `local` site is filled with the facts of `machine` (default: this one).

    Raises:
        UnknownNameError: no profile of that name.
        SiteProfileError: the profile is wrong, with file:line.
    """
    path = find_profile(name)
    document = read(path, SiteProfileError, _label(path))
    site = decode(document.data, SiteProfile, document.origins, SiteProfileError)
    _check_launchers(site)
    _check_name(site, path)
    check_variables(site)
    _check_directives(site)
    check_rendezvous(site)
    check_network(site)
    check_blocks(site)
    if site.value.scheduler == "local":
        return _on_this_machine(site, machine or this_machine())
    return site


def find_profile(name: str) -> Path:
    """Return the file of a profile given by name or by path."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        return Path(name)
    for folder in search_path():
        candidate = folder / f"{name}.yaml"
        if candidate.is_file():
            return candidate
    raise UnknownNameError("site", name, [path.stem for path in profile_files()])


def search_path() -> tuple[Path, ...]:
    """Return the folders that may hold profiles, first match first."""
    return (Path(), Path("site_profiles"), *site_folders(), profile_folder())


def profile_files() -> Iterator[Path]:
    """Yield every profile file that a name can reach, in order of their names."""
    found: dict[str, Path] = {}
    for folder in search_path():
        for path in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
            if path.stem not in found and _looks_like_profile(path):
                found[path.stem] = path
    yield from (found[name] for name in sorted(found))


def _looks_like_profile(path: Path) -> bool:
    """`./` holds job files too; a profile says which scheduler it has."""
    try:
        return lookup(read(path, SiteProfileError).data, "scheduler") is not None
    except SiteProfileError:
        return path.parent != Path()


def _label(path: Path) -> str:
    """Name shipped profiles by their place in the project, whatever the installation."""
    return f"site_profiles/{path.name}" if path.parent == profile_folder() else str(path)


def _check_launchers(site: Sourced[SiteProfile]) -> None:
    launchers = site.value.launchers
    place = site.origin("launchers.default")
    if launchers.default in launchers.forbidden:
        raise SiteProfileError(f"{place}: the default launcher {launchers.default!r} is forbidden")
    if launchers.default not in launchers.allowed:
        raise SiteProfileError(
            f"{place}: the default launcher {launchers.default!r} is not among the allowed: "
            f"{', '.join(launchers.allowed)}"
        )


def _check_name(site: Sourced[SiteProfile], path: Path) -> None:
    """A profile is found by its file's name, so both must be one."""
    if site.value.name != path.stem:
        raise SiteProfileError(
            f"{site.origin('name')}: the name {site.value.name!r} is not that of the file, "
            f"{path.stem!r}"
        )


def _check_directives(site: Sourced[SiteProfile]) -> None:
    for name, value in site.value.directives.items():
        problem = directive_problem(name, value)
        if problem:
            place = site.near(f"directives.{name}")
            raise SiteProfileError(f"{place}: directives.{name}: {problem[0]}", problem[1])


def _on_this_machine(site: Sourced[SiteProfile], machine: Machine) -> Sourced[SiteProfile]:
    given = site.value.partitions[0] if site.value.partitions else Partition(name="machine")
    origins = dict(site.origins)
    facts = {"cpus_per_node": machine.cpus, "gpus_per_node": machine.gpus}
    missing = {key: value for key, value in facts.items() if getattr(given, key) is None}
    origins.update({f"partitions.0.{key}": "this machine" for key in missing})
    partition = msgspec.structs.replace(given, default=True, **missing)
    value = msgspec.structs.replace(site.value, partitions=(partition,))
    return Sourced(value=value, origins=origins)
