"""The site of a command: --site, $HPCTRAIN_SITE, the profile that matches this host, local.

Where a scheduler was found, a job runs on this host only if the user says so: a login node is
shared by all users.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.base.errors import HpcTrainError, SiteProfileError
from hpc_train.base.value import Sourced, Value
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.defaults import read_defaults
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from hpc_train.sites.search import find_profile, layer_of, profile_files

if TYPE_CHECKING:
    from hpc_train.sites.detection import Found, Match

LOCAL = "local"
_GENERIC = "slurm-generic"
_VARIABLE = "HPCTRAIN_SITE"
_HERE = "--site local runs the job on this host"

_NONE = (
    "several nodes need a cluster: --site NAME, one of hpctrain site list; "
    "hpctrain lab up starts a Slurm of 4 nodes on this machine"
)

_ONE = (
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

    from hpc_train.sites.detection import found_here

    return default_site(found_here())


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
    slurm = found.scheduler.kind == "Slurm"
    drafts = "hpctrain site init drafts a profile"
    where = f"{login_node(found)} ({found.scheduler.evidence}), and no site profile matches it"
    advice = {
        "Slurm": f"{drafts}; --site {_GENERIC} submits without one",
        "PBS": drafts,
    }
    other = f"hpctrain does not submit to {found.scheduler.kind}: render prints a script to adapt"
    hints = (advice.get(found.scheduler.kind, other), _HERE)
    name = _GENERIC if slurm else LOCAL
    return SiteChoice(
        name=name,
        notice=f"site {name}: {where}",
        refusal=f"{where}: no job was started",
        hint="; ".join(hints),
    )


def _matching(found: Found) -> SiteChoice:
    """Return the best match; several equally good ones are no choice."""
    best = [match for match in found.matches if match.rank() == found.matches[0].rank()]
    name, why = best[0].name, ", ".join(best[0].reasons)
    if len(best) == 1:
        return SiteChoice(name=name, notice=f"{_place(found, best[0])}: site {name} ({why})")
    names = ", ".join(match.name for match in best)
    where = f"{len(best)} site profiles match {found.host} equally well: {names}"
    return SiteChoice(
        name=name,
        notice=f"site {name}: {where}",
        refusal=f"{where}: no job was started",
        hint="name one: " + " or ".join(f"--site {match.name}" for match in best),
    )


def _place(found: Found, match: Match) -> str:
    if match.scheduler == LOCAL:
        return f"the profile {match.name} matches {found.host}"
    return login_node(found, match.name)


def login_node(found: Found, name: str = "") -> str:
    """Return what a host is in its cluster: a login node, or a node of a running job."""
    cluster = found.scheduler.title if found.scheduler is not None else name
    job = os.environ.get("SLURM_JOB_ID")
    if job:
        return f"this shell is in job {job} of {cluster}"
    return f"this host looks like a login node of {cluster}"


def other_sites(nodes: Iterable[int]) -> str:
    """Return the sites that have the nodes of these jobs, or where to look for one node."""
    most = max(nodes, default=1)
    return advice_for(most) if most > 1 else _ONE


def advice_for(nodes: int) -> str:
    """Return the options --site of the user's clusters with that many nodes.

    They are the profiles that match this host, and those that are not shipped with hpctrain.
    """
    from hpc_train.sites.detection import found_here

    names = dict.fromkeys(match.name for match in found_here().matches)
    names |= dict.fromkeys(path.stem for path in profile_files() if layer_of(path) != "shipped")
    fitting = [profile.name for profile in _loaded(names) if _has(profile, nodes)]
    if not fitting:
        return _NONE
    return f"{nodes} nodes: " + " or ".join(f"--site {name}" for name in fitting)


def _loaded(names: dict[str, None]) -> Iterator[SiteProfile]:
    for name in names:
        try:
            yield load_site(find_profile(name)).value
        except HpcTrainError:
            continue  # `hpctrain site list` reports it


def _has(profile: SiteProfile, nodes: int) -> bool:
    """Whether a partition takes the nodes; one without a limit, or no list of them, does."""
    if find_batch_system(profile.scheduler).this_machine:
        return False
    most = [partition.max_nodes for partition in profile.partitions]
    return not most or any(one is None or one >= nodes for one in most)
