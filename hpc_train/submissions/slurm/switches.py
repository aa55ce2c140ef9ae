"""The switches or blocks of a cluster, as its controller knows them."""

from __future__ import annotations

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.model.switch_topology import SwitchTopology
from hpc_train.submissions.slurm.slurm_commands import call_slurm

_TIMEOUT_S = 10.0


def cluster_switches(cluster: SlurmEndpoint) -> tuple[bool, SwitchTopology | None]:
    """Return whether the controller answered, and its topology; None if it has none."""
    done = call_slurm(cluster, "scontrol", "show", "topology", timeout_s=_TIMEOUT_S)
    return done.returncode == 0, SwitchTopology.parse(done.stdout)
