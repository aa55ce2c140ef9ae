"""A profile, compared with the Slurm of this machine: the values that differ."""

from __future__ import annotations

from typing import NamedTuple

from hpc_train.model.live_cluster import Cluster
from hpc_train.probe.query_slurm import read_cluster
from hpc_train.sites.drift import Drift, compare
from hpc_train.sites.load import load_site


class LiveCheck(NamedTuple):
    """The name of the profile, the cluster's answers, and the comparison."""

    name: str
    cluster: Cluster
    drift: Drift


def check_live(site: str) -> LiveCheck:
    """Compare a profile with the output of the local Slurm's commands.

    Raises:
        HpcTrainError: no such profile, or Slurm does not answer.
    """
    profile = load_site(site)
    cluster = read_cluster()
    return LiveCheck(profile.value.name, cluster, compare(profile, cluster))
