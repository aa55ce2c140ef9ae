"""A script -> `sbatch --test-only` -> SlurmAnswer, with what the cluster offers if it refuses."""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path, PurePath

from msgspec.structs import replace

from hpc_train.base.errors import SpecError
from hpc_train.base.processes import Finished
from hpc_train.lint.script import read_script
from hpc_train.runs.submission import SlurmEndpoint
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.detection import settings, word
from hpc_train.sites.profile import SiteProfile
from hpc_train.slurm.live_cluster import Association
from hpc_train.slurm.parse_slurm_output import associations, nodes, partitions
from hpc_train.slurm.sbatch import answer_of, ask_sbatch, shell_variables
from hpc_train.slurm.slurm_answer import SlurmAnswer, SlurmFacts
from hpc_train.slurm.slurm_commands import call_slurm
from hpc_train.submissions.submit import cluster_of

_FACTS_TIMEOUT_S = 10.0
_ASSOCIATIONS = "format=Cluster,Account,Partition,QOS,DefaultQOS,MaxSubmit"
_OF_ACCOUNTS = {"account", "qos"}


class SlurmJudge:
    """Asks Slurm about scripts; once it has not answered, it is not asked again."""

    def __init__(self) -> None:
        self._silent: dict[SlurmEndpoint, SlurmAnswer] = {}

    def judge(self, text: str, site: SiteProfile | None, name: str, subject: str) -> SlurmAnswer:
        """Return the answer about a script; `name` is that of its file."""
        if site is not None and not find_batch_system(site.scheduler).steps:
            return _not_slurm(site, subject)
        cluster = cluster_of(site) if site else SlurmEndpoint()
        if cluster in self._silent:
            return replace(self._silent[cluster], subject=subject)
        directives = [one for one in read_script(text).directives if not one.late]
        options = {option.name for one in directives for option in one.options}
        answer = answer_of(_ask(text, cluster, name, options))
        if answer.outcome == "unanswered":
            self._silent[cluster] = answer
        return replace(
            answer,
            subject=subject,
            variables=shell_variables(os.environ, options),
            outer_job=os.environ.get("SLURM_JOB_ID", ""),
            facts=SlurmFacts() if "clusters" in options else _facts(answer, cluster),
        )


def slurm_judge() -> SlurmJudge:
    """Return what asks Slurm.

    Raises:
        SpecError: sbatch is not installed here.
    """
    if shutil.which("sbatch") is None:
        raise SpecError(
            "--ask: sbatch is not on PATH, so this is not a login node of a Slurm cluster",
            "leave --ask out, or run this on a login node",
        )
    return SlurmJudge()


def _not_slurm(site: SiteProfile, subject: str) -> SlurmAnswer:
    words = f"the scheduler of {site.name} is {site.scheduler}, not Slurm"
    return SlurmAnswer(outcome="unanswered", words=words, subject=subject)


def _ask(text: str, cluster: SlurmEndpoint, name: str, options: set[str]) -> Finished:
    """Ask about a copy: the script may come from stdin, be rendered, or be fixed just now."""
    with tempfile.TemporaryDirectory(prefix="hpctrain-") as folder:
        # sbatch names the job after the file, and a site's plug-in may look at the name.
        path = Path(folder, PurePath(name).name.strip("-") or "job.sbatch")
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return ask_sbatch(cluster, path, options)


def _facts(answer: SlurmAnswer, cluster: SlurmEndpoint) -> SlurmFacts:
    """Return what the cluster offers for the options that a refusal is about."""
    options = set(answer.refusal.options) if answer.refusal else set()
    if not options:
        return SlurmFacts()
    found = _resources(cluster)
    return replace(found, associations=_accounts(cluster)) if options & _OF_ACCOUNTS else found


@cache
def _resources(cluster: SlurmEndpoint) -> SlurmFacts:
    return SlurmFacts(
        partitions=partitions(_output(cluster, "scontrol", "show", "partition", "--oneliner")),
        nodes=nodes(_output(cluster, "scontrol", "show", "node", "--oneliner")),
    )


@cache
def _accounts(cluster: SlurmEndpoint) -> tuple[Association, ...]:
    config = settings(_output(cluster, "scontrol", "show", "config"))
    user = f"user={getpass.getuser()}"
    text = _output(cluster, "sacctmgr", "-P", "show", "assoc", user, _ASSOCIATIONS)
    return associations(text, word(config, "ClusterName"))


def _output(cluster: SlurmEndpoint, *argv: str) -> str:
    """Return the output of a command of Slurm; empty if it fails."""
    done = call_slurm(cluster, *argv, timeout_s=_FACTS_TIMEOUT_S)
    return done.stdout if done.returncode == 0 else ""
