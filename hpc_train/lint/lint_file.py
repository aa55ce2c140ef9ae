"""A script -> `sbatch --test-only` -> SlurmAnswer, with what the cluster offers if it refuses."""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePath

from msgspec.structs import replace

from hpc_train.base.errors import SpecError
from hpc_train.base.files import open_stream
from hpc_train.base.finding import LintFinding
from hpc_train.base.processes import Finished
from hpc_train.base.value import Value
from hpc_train.base.yamlfile import list_files, nearest_file
from hpc_train.lint.lint_script import chosen_rules, lint_script, repair_script, suppressions
from hpc_train.lint.rule import (
    NCCL,
    OPEN_MPI,
    SLURM,
    LintContext,
    LintFabric,
    LintRule,
    parse_version,
)
from hpc_train.lint.rules.slurm_answer import without_repetition
from hpc_train.lint.script import read_script
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.json_files import cannot_write, write_file
from hpc_train.runs.run import Script, SlurmEndpoint
from hpc_train.scripts.explain import at_origin
from hpc_train.scripts.prepare import Prepared, Request, prepare
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.default_site import choose_site, load_choice
from hpc_train.sites.profile import SiteProfile
from hpc_train.slurm.live_cluster import (
    Association,
    SlurmAnswer,
    SlurmFacts,
    associations,
    nodes,
    partitions,
    settings,
    word,
)
from hpc_train.slurm.sbatch import answer_of, ask_sbatch, shell_variables
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
            words = f"the scheduler of {site.name} is {site.scheduler}, not Slurm"
            return SlurmAnswer(outcome="unanswered", words=words, subject=subject)
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


_LARGEST = 4 * 1024 * 1024
# The rules on the answer of Slurm.
_ANSWER = "HT8"


class LintOptions(Value, frozen=True, kw_only=True):
    """Options of the command line."""

    site: str | None = None
    nccl: str | None = None
    openmpi: str | None = None
    slurm: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fix: bool = False
    ask: bool = False


class Linter(Value, frozen=True, kw_only=True):
    """The resolved options, for any number of files; `judge` asks Slurm."""

    context: LintContext
    rules: tuple[LintRule, ...]
    site: str | None
    fix: bool
    judge: SlurmJudge | None = None


class Checked(Value, frozen=True, kw_only=True):
    """Findings and fixes of a file; of a job file also the site that it was rendered for."""

    findings: tuple[LintFinding, ...]
    fixed: tuple[LintFinding, ...] = ()
    site: str = ""


def make_linter(options: LintOptions) -> Linter:
    """Resolve the options.

    Raises:
        HpcTrainError: an unknown rule or site, an invalid version, or no sbatch to ask.
    """
    # The site of this host has nothing to do with a script.
    named = options.site or os.environ.get("HPCTRAIN_SITE")
    site = load_choice(choose_site(options.site))[1].value if named else None
    nccl, openmpi, slurm = options.nccl, options.openmpi, options.slurm
    given = LintContext(
        nccl=None if nccl is None else parse_version(nccl, "--nccl", NCCL),
        openmpi=None if openmpi is None else parse_version(openmpi, "--openmpi", OPEN_MPI),
        slurm=None if slurm is None else parse_version(slurm, "--slurm", SLURM),
    )
    context = _at_site(given, site) if site else given
    return Linter(
        context=context,
        rules=chosen_rules(options.select, options.ignore),
        site=options.site,
        fix=options.fix,
        judge=slurm_judge() if options.ask else None,
    )


def _at_site(context: LintContext, site: SiteProfile) -> LintContext:
    """Add values of the profile; versions of the command line take precedence."""
    network, openmpi = site.network, site.launchers.openmpi
    mpi = parse_version(openmpi, "launchers.openmpi", OPEN_MPI) if openmpi else None
    return replace(
        context,
        site=site,
        fabric=_fabric_of(site),
        nccl=context.nccl or (network.nccl if network else None),
        openmpi=context.openmpi or mpi,
        slurm=context.slurm or site.slurm,
    )


def lint_file(path: Path, linter: Linter) -> Checked:
    """Check a file, and optionally fix it.

    Raises:
        HpcTrainError: the file cannot be read or written, is binary, or is a job file with an
            error.
    """
    raw = _read(path)
    if path.suffix in (".yaml", ".yml"):
        if linter.fix:
            raise SpecError(
                f"{path}: --fix changes scripts only", "follow the advice without --fix"
            )
        prepared = prepare(Request(path=path, site=linter.site))
        found = tuple(_lint_job(path, raw, linter, prepared))
        return Checked(findings=found, site=prepared.site.name)
    checked, fixed = lint_bytes(raw, linter, str(path))
    if fixed == raw:
        return checked
    try:
        mode = path.stat().st_mode
        # The new file replaces it, also where it may not be written.
        path.open("r+b").close()
        write_file(path, fixed)
        path.chmod(mode & 0o7777)
    except OSError as failure:
        raise cannot_write(path, failure) from None
    return checked


def lint_bytes(raw: bytes, linter: Linter, label: str) -> tuple[Checked, bytes]:
    """Check a script's bytes; optionally return them with fixes.

    Raises:
        SpecError: a binary file.
    """
    if b"\0" in raw:
        raise SpecError(
            f"{label}: a binary file (byte {raw.index(0)} is NUL), not a script",
            "name the job script: a text whose first line is #!/bin/bash",
        )
    text = raw.decode("utf-8", "surrogateescape")
    fixed: tuple[LintFinding, ...] = ()
    if linter.fix:
        repair = repair_script(text, linter.context, linter.rules)
        text, fixed = repair.text, repair.mended
    findings = _judged(text, linter, linter.context, PurePath(label).name)
    return Checked(findings=findings, fixed=fixed), text.encode("utf-8", "surrogateescape")


def _judged(
    text: str, linter: Linter, context: LintContext, name: str = "", subject: str = "the script"
) -> tuple[LintFinding, ...]:
    """Apply the rules; with `--ask` those on the answer of Slurm, too."""
    if linter.judge is None:
        return lint_script(text, context, linter.rules)
    answer = linter.judge.judge(text, context.site, name, subject)
    findings = lint_script(text, replace(context, answer=answer), linter.rules)
    return without_repetition(findings, answer)


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise SpecError(f"{path}: a folder, not a script", f"hpctrain lint {path}/*.sbatch")
        with open_stream(path) as stream:
            raw = stream.read(_LARGEST + 1)
    except OSError as failure:
        raise SpecError(
            f"{path}: {failure.strerror or failure}{nearest_file(path)}", list_files(path)
        ) from None
    if len(raw) > _LARGEST:
        raise SpecError(f"{path}: larger than {_LARGEST // 2**20} MiB; is this the right file?")
    return raw


def _lint_job(path: Path, raw: bytes, linter: Linter, prepared: Prepared) -> Iterator[LintFinding]:
    findings: dict[LintFinding, None] = {}
    for script, plan, found in _of_scripts(prepared, linter):
        for finding in found:
            # The answer on a whole script has line 1.
            whole = finding.id.startswith(_ANSWER) and finding.line == 1
            findings[finding if whole else at_origin(finding, script, plan, str(path))] = None
    suppressed = suppressions(read_script(raw.decode("utf-8", "replace")))
    for finding in sorted(findings, key=lambda one: (one.line, one.id, one.message)):
        if not suppressed(finding.id, finding.line):
            yield finding


def _of_scripts(
    prepared: Prepared, linter: Linter
) -> Iterator[tuple[Script, LaunchPlan, tuple[LintFinding, ...]]]:
    """Yield the findings of each script; Slurm judges those that it would get."""
    silent = replace(linter, judge=None) if prepared.allocation else linter
    context = _at_site(linter.context, prepared.site.site.value)
    for point in prepared.points:
        subject = f"point {point.stem}" if prepared.study else "the script"
        found = _judged(point.script.text, silent, context, subject=subject)
        yield point.script, point.plan, found
    if prepared.allocation is not None and linter.judge is not None:
        script, plan = prepared.allocation, prepared.points[0].plan
        rules = tuple(rule for rule in linter.rules if rule.id.startswith(_ANSWER))
        of_answer = replace(linter, rules=rules)
        found = _judged(script.text, of_answer, context, subject="the allocation")
        yield script, plan, found


# RoCE uses the same verbs; Google's stacks are different.
_FABRICS: dict[str, LintFabric] = {
    "infiniband": "infiniband",
    "roce": "infiniband",
    "slingshot": "slingshot",
    "efa": "efa",
    "ethernet": "ethernet",
}


def _fabric_of(site: SiteProfile) -> LintFabric | None:
    """Return the profile's fabric, or the one that its variables belong to."""
    network = site.network
    if network is not None and network.fabric is not None:
        return _FABRICS.get(network.fabric)
    if site.env.get("FI_PROVIDER") == "efa":
        return "efa"
    if site.env.get("FI_PROVIDER") == "cxi" or any(name.startswith("FI_CXI_") for name in site.env):
        return "slingshot"
    return "infiniband" if "NCCL_IB_HCA" in site.env else None
