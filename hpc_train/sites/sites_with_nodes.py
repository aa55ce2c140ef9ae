"""The sites that a user has with several nodes, for a job that this machine cannot run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpc_train.base.errors import HpcTrainError
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.detection_cache import found_here
from hpc_train.sites.load import load_site
from hpc_train.sites.search import find_profile, layer_of, profile_files
from hpc_train.sites.site import SiteProfile

_NONE = (
    "several nodes need a cluster: --site NAME, one of hpctrain site list; "
    "hpctrain lab up starts a Slurm of 4 nodes on this machine"
)

_ONE = (
    "hpctrain site show local prints what this machine offers, hpctrain site list the other sites"
)


def other_sites(nodes: Iterable[int]) -> str:
    """Return the sites that have the nodes of these jobs, or where to look for one node."""
    most = max(nodes, default=1)
    return advice_for(most) if most > 1 else _ONE


def advice_for(nodes: int) -> str:
    """Return the options --site of the user's clusters with that many nodes.

    They are the profiles that match this host, and those that are not shipped with hpctrain.
    """
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
