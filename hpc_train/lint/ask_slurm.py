"""What Slurm says of a script: `sbatch --test-only`, and the facts that a refusal is about."""

import getpass
import tempfile
from functools import cache
from pathlib import Path, PurePath

from msgspec.structs import replace

from hpc_train.lint.script import read_script
from hpc_train.runs.run import SlurmEndpoint
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.profile import SiteProfile
from hpc_train.slurm import live_cluster
from hpc_train.slurm.live_cluster import SlurmAnswer, SlurmFacts
from hpc_train.slurm.sbatch import answer_of, ask_sbatch
from hpc_train.slurm.slurm_commands import call_slurm
from hpc_train.submissions.submit import cluster_of

_TIMEOUT_S = 10.0
_ASSOCIATIONS = "format=Cluster,Account,Partition,QOS,DefaultQOS,MaxSubmit"


def ask_slurm(
    text: str,
    site: SiteProfile | None,
    name: str,
    subject: str,
    silent: dict[SlurmEndpoint, SlurmAnswer],
) -> SlurmAnswer:
    """Return the answer about a script, whose file has a name; a `silent` cluster is not asked."""
    if site is not None and not find_batch_system(site.scheduler).steps:
        words = f"the scheduler of {site.name} is {site.scheduler}, not Slurm"
        return SlurmAnswer(outcome="unanswered", words=words, subject=subject)
    cluster = cluster_of(site) if site else SlurmEndpoint()
    if cluster in silent:
        return replace(silent[cluster], subject=subject)
    directives = read_script(text).live_directives
    options = {option.name: option.value or "" for one in directives for option in one.options}
    # A copy: the script may come from stdin, be rendered, or be fixed just now.
    with tempfile.TemporaryDirectory(prefix="hpctrain-") as folder:
        # sbatch names the job after the file, and a site's plug-in may look at the name.
        path = Path(folder, PurePath(name).name.strip("-") or "job.sbatch")
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        answer = answer_of(ask_sbatch(cluster, path, options))
    if answer.outcome == "unanswered":
        silent[cluster] = answer
    about = set(answer.refusal.options) if answer.refusal and "clusters" not in options else set()
    facts = resources(cluster) if about else SlurmFacts()
    if about & {"account", "qos"}:
        facts = replace(facts, associations=accounts(cluster))
    return replace(answer, subject=subject, facts=facts)


@cache
def resources(cluster: SlurmEndpoint) -> SlurmFacts:
    """Return the partitions and nodes of a cluster."""
    partitions = _output(cluster, "scontrol", "show", "partition", "--oneliner")
    nodes = _output(cluster, "scontrol", "show", "node", "--oneliner")
    return SlurmFacts(
        partitions=live_cluster.partitions(partitions), nodes=live_cluster.nodes(nodes)
    )


@cache
def accounts(cluster: SlurmEndpoint) -> tuple[live_cluster.Association, ...]:
    """Return the associations of this user."""
    config = live_cluster.settings(_output(cluster, "scontrol", "show", "config"))
    user = f"user={getpass.getuser()}"
    text = _output(cluster, "sacctmgr", "-P", "show", "assoc", user, _ASSOCIATIONS)
    return live_cluster.associations(text, live_cluster.word(config, "ClusterName"))


def _output(cluster: SlurmEndpoint, *argv: str) -> str:
    """Return the output of a command of Slurm; empty if it fails."""
    done = call_slurm(cluster, *argv, timeout_s=_TIMEOUT_S)
    return done.stdout if done.returncode == 0 else ""
