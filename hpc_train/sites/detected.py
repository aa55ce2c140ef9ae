"""What detection finds on a host: its scheduler, and the site profiles that match it."""

from collections.abc import Mapping
from pathlib import Path

from hpc_train.base.value import Value

# Files by which a scheduler is found. The packages of SchedMD and the distributions, sackd and
# configless nodes, old Debian, AWS ParallelCluster, a build without --sysconfdir.
CONF_FILES = (
    Path("/etc/slurm/slurm.conf"),
    Path("/run/slurm/conf/slurm.conf"),
    Path("/etc/slurm-llnl/slurm.conf"),
    Path("/opt/slurm/etc/slurm.conf"),
    Path("/usr/local/etc/slurm.conf"),
)
PBS_FILES = (Path("/etc/pbs.conf"), Path("/var/spool/torque/server_name"))


class Scheduler(Value, frozen=True, kw_only=True):
    """A scheduler, its cluster if that has a name, and the evidence for both."""

    kind: str
    evidence: str
    cluster: str = ""

    @property
    def title(self) -> str:
        """Return the cluster as a message names it."""
        return (
            f"the {self.kind} cluster {self.cluster}" if self.cluster else f"a {self.kind} cluster"
        )


class Match(Value, frozen=True, kw_only=True):
    """A profile that matches, and why."""

    name: str
    reasons: tuple[str, ...]
    scheduler: str = ""
    shipped: bool = True

    def rank(self) -> tuple[int, bool]:
        """Return the key by which matches are sorted."""
        return -len(self.reasons), self.shipped


class Found(Value, frozen=True, kw_only=True):
    """What was found on a host; `env` are the variables that profiles compare, as they were."""

    host: str
    scheduler: Scheduler | None = None
    matches: tuple[Match, ...] = ()
    env: Mapping[str, str | None]
