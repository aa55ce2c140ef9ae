"""The scheduler of this host, the profiles that match it, and what a command leaves out."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hpc_train.base.data_folders import DEFAULTS_FILE, user_folder
from hpc_train.base.decode import decode, keys_of
from hpc_train.base.errors import HpcTrainError, SiteProfileError, SpecError
from hpc_train.base.files import read_regular
from hpc_train.base.processes import ABSENT, Ask, ask
from hpc_train.base.values import Sourced, Value
from hpc_train.base.yamlfile import read
from hpc_train.jobs.job import Defaults, SiteDefaults, SourcedJob
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import Detect, SiteProfile
from hpc_train.sites.search import find_profile, layer_of, profiles_with

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
    """What was found on a host: its scheduler, the matching profiles, and all with rules.

    The best match has the most reasons; of two with as many, one that is not shipped with hpctrain.
    `unread` are errors of queries.
    """

    host: str
    scheduler: Scheduler | None = None
    matches: tuple[Match, ...] = ()
    known: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


QUESTION = ("scontrol", "show", "config")
_COMMAND = f"`{' '.join(QUESTION)}`"
_TIMEOUT_S = 10.0
# A command without any configuration says so instead.
_CONFIGURED = "unable to contact slurm controller"
_CLUSTER = re.compile(
    rb"^[ \t]*ClusterName[ \t]*=[ \t]*([\w.-]{1,256})", re.IGNORECASE | re.MULTILINE
)
# A slurm.conf with all nodes of a large cluster has some 100 kB.
_LARGEST_FILE = 16 << 20


def find_scheduler(env: Mapping[str, str], question: Ask = ask) -> tuple[Scheduler | None, str]:
    """Return the scheduler of this machine, and why an installed Slurm names no cluster."""
    slurm, problem = _slurm(env, question)
    return slurm or next(_others(env), None), problem


def conf_file(env: Mapping[str, str]) -> Path | None:
    """Return the slurm.conf of this shell, even if it does not exist, or of this machine."""
    given = env.get("SLURM_CONF")
    return Path(given) if given else next(filter(Path.is_file, CONF_FILES), None)


def cluster_name(conf: Path) -> str:
    """Return the ClusterName in a slurm.conf; empty without one, or if it cannot be read."""
    try:
        found = _CLUSTER.search(read_regular(conf, _LARGEST_FILE))
    except OSError:
        return ""
    return found[1].decode() if found else ""


def _slurm(env: Mapping[str, str], question: Ask) -> tuple[Scheduler | None, str]:
    if name := env.get("SLURM_CLUSTER_NAME"):
        return Scheduler(kind="Slurm", cluster=name, evidence="SLURM_CLUSTER_NAME"), ""
    conf = conf_file(env)
    if conf is not None and (name := cluster_name(conf)):
        return Scheduler(kind="Slurm", cluster=name, evidence=f"ClusterName in {conf}"), ""
    answer = question(*QUESTION, timeout_s=_TIMEOUT_S)
    if found := _CLUSTER.search(answer.text.encode()):
        evidence = f"ClusterName of {_COMMAND}"
        return Scheduler(kind="Slurm", cluster=found[1].decode(), evidence=evidence), ""
    problem = answer.problem or "it names no ClusterName"
    if conf is not None:
        return Scheduler(kind="Slurm", evidence=_silent(conf, env)), problem
    if _CONFIGURED in problem.lower():
        return Scheduler(kind="Slurm", evidence=f"{_COMMAND}: {problem}"), problem
    return None, "" if problem == ABSENT else problem


def _silent(conf: Path, env: Mapping[str, str]) -> str:
    """Return the evidence of a slurm.conf from which no name was read."""
    place = f"SLURM_CONF={conf}" if env.get("SLURM_CONF") else str(conf)
    return place if os.access(conf, os.R_OK) else f"{place}, which cannot be read"


def _others(env: Mapping[str, str]) -> Iterator[Scheduler]:
    """Yield other schedulers: a command that submits, and the configuration that it needs."""
    if shutil.which("qsub"):
        files = [Path(env["PBS_CONF_FILE"])] if env.get("PBS_CONF_FILE") else PBS_FILES
        for file in filter(Path.is_file, files):
            yield Scheduler(kind="PBS", evidence=f"qsub, {file}")
        if env.get("SGE_ROOT"):
            evidence = f"qsub, SGE_ROOT={env['SGE_ROOT']}"
            yield Scheduler(kind="Grid Engine", evidence=evidence)
    if shutil.which("bsub") and env.get("LSF_ENVDIR"):
        yield Scheduler(kind="LSF", evidence=f"bsub, LSF_ENVDIR={env['LSF_ENVDIR']}")


def is_pbs() -> bool:
    """Return whether this machine has the commands of PBS, and no Slurm that is configured.

    On a cluster with Slurm, qstat may be a wrapper for users who come from PBS.
    """
    if shutil.which("qstat") is None:
        return False
    slurm = conf_file(os.environ) is not None or "SLURM_CLUSTER_NAME" in os.environ
    return not slurm or shutil.which("scontrol") is None


class Host(Value, frozen=True, kw_only=True):
    """Facts for detection: host names, the scheduler and Slurm's cluster, the environment.

    `problem` is the reason why an installed Slurm does not name its cluster.
    """

    names: tuple[str, ...]
    cluster: str
    env: Mapping[str, str]
    problem: str = ""
    scheduler: Scheduler | None = None


def this_host(question: Ask = ask) -> Host:
    """Query the machine and, if there is one, the scheduler."""
    # A site that is named needs no host.
    import socket

    env = dict(os.environ)
    scheduler, problem = find_scheduler(env, question)
    return Host(
        names=tuple(dict.fromkeys((socket.gethostname(), socket.getfqdn()))),
        cluster=scheduler.cluster if scheduler is not None and scheduler.kind == "Slurm" else "",
        env=env,
        problem=problem,
        scheduler=scheduler,
    )


def detect_site(host: Host) -> Found:
    """Compare a host with each profile that has rules for detection."""
    matches: list[Match] = []
    known: list[str] = []
    unread = [f"{_COMMAND}: {host.problem}"] if host.problem else []
    for path in profiles_with("detect"):
        # The setup lines of a profile run in the job: those of others are not used unasked.
        if layer_of(path) == "here" and path.stat().st_uid not in (os.geteuid(), 0):
            unread.append(f"{path}: left out, as it belongs to another user: --site {path} uses it")
            continue
        try:
            profile = load_site(path).value
        except HpcTrainError as failure:
            unread.append(failure.message)
            continue
        if profile.detect is None:
            continue
        known.append(profile.name)
        if reasons := tuple(_reasons(profile.detect, host)):
            match = Match(
                name=profile.name,
                reasons=reasons,
                scheduler=profile.scheduler,
                shipped=layer_of(path) == "shipped",
            )
            matches.append(match)
    return Found(
        host=host.names[0],
        scheduler=host.scheduler,
        matches=tuple(sorted(matches, key=Match.rank)),
        known=tuple(known),
        unread=tuple(unread),
    )


def _reasons(detect: Detect, host: Host) -> Iterator[str]:
    for name, pattern in detect.env.items():
        if fnmatchcase(host.env.get(name, ""), pattern) and name in host.env:
            yield f"{name}={host.env[name]}"
    if host.cluster in detect.clusters:
        yield f"ClusterName {host.cluster}"
    for pattern in detect.hosts:
        for name in host.names:
            if fnmatchcase(name, pattern):
                yield f"host {name}"


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
