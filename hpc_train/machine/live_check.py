"""A profile, compared with the Slurm or PBS of this machine: the values that differ."""

from __future__ import annotations

from typing import NamedTuple

from hpc_train.base.errors import SiteProfileError
from hpc_train.machine.drift import Drift, compare
from hpc_train.machine.pbs_drift import compare_pbs
from hpc_train.pbs.live_pbs import LivePbs
from hpc_train.pbs.query_pbs import read_pbs
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import load_site
from hpc_train.slurm.live_cluster import Cluster
from hpc_train.slurm.query_slurm import read_cluster


class LiveCheck(NamedTuple):
    """The name of the profile, the scheduler's answers, and the comparison."""

    name: str
    cluster: Cluster | LivePbs
    drift: Drift


def check_live(site: str) -> LiveCheck:
    """Compare a profile with the output of its scheduler's commands.

    Raises:
        HpcTrainError: no such profile, or the scheduler has no commands, or does not answer.
    """
    profile = load_site(site)
    batch = find_batch_system(profile.value.scheduler)
    if not batch.prefix:
        raise SiteProfileError(
            f"{profile.near('scheduler')}: --live asks the commands of Slurm or PBS, which "
            f"{batch.title} does not have",
            f"hpctrain site check {site} plans and checks sample jobs; HPCTRAIN_SITE={site} "
            "hpctrain doctor examines this machine and, for SageMaker, the account",
        )
    if batch.letters:
        pbs = read_pbs()
        return LiveCheck(profile.value.name, pbs, compare_pbs(profile, pbs))
    cluster = read_cluster()
    return LiveCheck(profile.value.name, cluster, compare(profile, cluster))
