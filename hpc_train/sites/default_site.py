"""What a command leaves out: its site, and the keys of its job.

The site is --site, $HPCTRAIN_SITE, the profile that matches this host, or local. Where a scheduler
was found, a job runs on this host only if the user says so: a login node is shared by all users.
The keys are those of variables of sbatch, then of the user's own defaults.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hpc_train.base.data_folders import DEFAULTS_FILE, user_folder
from hpc_train.base.decode import decode, keys_of
from hpc_train.base.errors import HpcTrainError, SiteProfileError, SpecError
from hpc_train.base.value import Sourced, Value
from hpc_train.base.yamlfile import read
from hpc_train.jobs.job import Defaults, SiteDefaults, SourcedJob
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from hpc_train.sites.search import find_profile

if TYPE_CHECKING:
    from hpc_train.sites.detection import Found

LOCAL = "local"
_GENERIC = "slurm-generic"
_VARIABLE = "HPCTRAIN_SITE"
# What a job that does not fit on this machine may do.
SEVERAL_NODES = (
    "several nodes need a cluster: --site NAME, one of hpctrain site list; "
    "hpctrain lab up starts a Slurm of 4 nodes on this machine"
)
ONE_NODE = (
    "hpctrain site show local prints what this machine offers, hpctrain site list the other sites"
)


class SiteChoice(Value, frozen=True, kw_only=True):
    """The profile of a command; `notice` says why it was chosen, unless the user named it.

    `variable` is the one of the environment that has the name. `refusal` is the reason why no job
    may be started with it, and `hint` the next commands.
    """

    name: str
    notice: str = ""
    variable: str = ""
    refusal: str = ""
    hint: str = ""

    def check(self) -> None:
        """Refuse to start jobs.

        Raises:
            SiteProfileError: the site of this host is not known, or not certain.
        """
        if self.refusal:
            raise SiteProfileError(self.refusal, self.hint)


def choose_site(named: str | None) -> SiteChoice:
    """Return the site of a command; `named` is the value of --site."""
    if named:
        return SiteChoice(name=named)
    if given := os.environ.get(_VARIABLE):
        return SiteChoice(name=given, variable=_VARIABLE)
    own = read_defaults()
    if own.value.site:
        return SiteChoice(name=own.value.site, notice=f"site {own.value.site} ({own.near('site')})")
    # A command with a site needs none of the modules.

    from hpc_train.sites.detection import detect_site, this_host

    return default_site(detect_site(this_host()))


def load_choice(choice: SiteChoice) -> tuple[Path, Sourced[SiteProfile]]:
    """Return the file of the chosen profile, and the profile.

    Raises:
        HpcTrainError: there is no such profile, or it is wrong; it names the variable that has the
        name.
    """
    try:
        profile = find_profile(choice.name)
        return profile, load_site(profile)
    except HpcTrainError as failure:
        if choice.variable:
            where = f"the site is that of the environment variable {choice.variable}"
            failure.hint = f"{where}; {failure.hint}".removesuffix("; ")
        elif choice.notice:
            failure.message = f"{choice.notice}: {failure.message}"
        raise


def default_site(found: Found) -> SiteChoice:
    """Return the site of a host without --site and $HPCTRAIN_SITE."""
    if found.matches:
        return _matching(found)
    if found.scheduler is None:
        why = f"no scheduler was found on {found.host}, and no profile matches it"
        return SiteChoice(name=LOCAL, notice=f"site {LOCAL}: {why}")
    kind, drafts = found.scheduler.kind, "hpctrain site init drafts a profile"
    where = f"{login_node(found)} ({found.scheduler.evidence}), and no site profile matches it"
    advice = {
        "Slurm": f"{drafts}; --site {_GENERIC} submits without one",
        "PBS": drafts,
    }
    other = f"hpctrain does not submit to {kind}: render prints a script to adapt"
    name = _GENERIC if kind == "Slurm" else LOCAL
    return SiteChoice(
        name=name,
        notice=f"site {name}: {where}",
        refusal=f"{where}: no job was started",
        hint=f"{advice.get(kind, other)}; --site local runs the job on this host",
    )


def _matching(found: Found) -> SiteChoice:
    """Return the best match; several equally good ones are no choice."""
    best = [match for match in found.matches if match.rank() == found.matches[0].rank()]
    name, why = best[0].name, ", ".join(best[0].reasons)
    if len(best) == 1:
        place = f"the profile {name} matches {found.host}"
        if best[0].scheduler != LOCAL:
            place = login_node(found, name)
        return SiteChoice(name=name, notice=f"{place}: site {name} ({why})")
    names = ", ".join(match.name for match in best)
    where = f"{len(best)} site profiles match {found.host} equally well: {names}"
    return SiteChoice(
        name=name,
        notice=f"site {name}: {where}",
        refusal=f"{where}: no job was started",
        hint="name one: " + " or ".join(f"--site {match.name}" for match in best),
    )


def login_node(found: Found, name: str = "") -> str:
    """Return what a host is in its cluster: a login node, or a node of a running job."""
    cluster = found.scheduler.title if found.scheduler is not None else name
    job = os.environ.get("SLURM_JOB_ID")
    if job:
        return f"this shell is in job {job} of {cluster}"
    return f"this host looks like a login node of {cluster}"


# Key of the job -> the variables of sbatch and srun, in order.
_VARIABLES = {
    "account": ("SBATCH_ACCOUNT", "SLURM_ACCOUNT"),
    "partition": ("SBATCH_PARTITION",),
    "qos": ("SBATCH_QOS",),
}


def read_defaults() -> Sourced[Defaults]:
    """Return the user's defaults; without the file there are none.

    Raises:
        SpecError: the file is wrong.
    """
    path = user_folder() / DEFAULTS_FILE
    if not path.is_file():
        return Sourced(value=Defaults(), origins={})
    document = read(path, SpecError, _short(path))
    return decode(document.data, Defaults, document.origins, SpecError)


def fill(job: SourcedJob, site: SiteProfile, own: Sourced[Defaults]) -> tuple[SourcedJob, str]:
    """Return a job with what it leaves out, and a notice of it; empty if nothing was filled."""
    found = dict(_found(job, site, own))
    if not found:
        return job, ""
    spec = replace(job.value, **{key: value for key, (value, _) in found.items()})
    origins = {**job.origins, **{key: origin for key, (_, origin) in found.items()}}
    said = (
        f"{key}{f' {value}' if isinstance(value, str) else ''} ({origin})"
        for key, (value, origin) in found.items()
    )
    return Sourced(value=spec, origins=origins), f"at {site.name}: {', '.join(said)}"


def _found(
    job: SourcedJob, site: SiteProfile, own: Sourced[Defaults]
) -> Iterator[tuple[str, tuple[Any, str]]]:
    batch = find_batch_system(site.scheduler)
    here = own.value.sites.get(site.name, SiteDefaults())
    for key in keys_of(SiteDefaults):
        if getattr(job.value, key):
            continue
        names = _VARIABLES.get(key, ()) if "SBATCH" in batch.prefix else ()
        variable = next((name for name in names if os.environ.get(name)), "")
        if variable:
            yield key, (os.environ[variable], f"${variable}")
        elif value := getattr(here, key):
            yield key, (value, own.near(f"sites.{site.name}.{key}"))


def _short(path: Path) -> str:
    home = os.environ.get("HOME", "")
    return f"~/{path.relative_to(home)}" if home and path.is_relative_to(home) else str(path)
