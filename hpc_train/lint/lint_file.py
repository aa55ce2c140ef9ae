"""Files -> findings: scripts, job files as rendered, and with `--ask` the answer of Slurm."""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePath
from types import MappingProxyType

from msgspec.structs import replace

from hpc_train.base.errors import SpecError
from hpc_train.base.files import open_stream
from hpc_train.base.values import LintFinding, Value
from hpc_train.base.yamlfile import list_files, nearest_file
from hpc_train.lint.lint_script import lint_script, repair_script, suppressions
from hpc_train.lint.rule import NCCL, SLURM, LintContext, LintFabric, LintRule, parse_version
from hpc_train.lint.rules import all_rules
from hpc_train.lint.rules.slurm_answer import without_repetition
from hpc_train.lint.script import read_script
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.json_files import cannot_write, write_file
from hpc_train.runs.run import Script, SlurmEndpoint
from hpc_train.scripts.explain import at_origin
from hpc_train.scripts.prepare import Prepared, Request, prepare
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.detection import choose_site, load_choice
from hpc_train.sites.profile import SiteProfile
from hpc_train.slurm import live_cluster
from hpc_train.slurm.sbatch import answer_of, ask_sbatch
from hpc_train.slurm.slurm_commands import call_slurm, notices
from hpc_train.submissions.submit import cluster_of

_LARGEST = 4 * 1024 * 1024
# The rules on the answer of Slurm.
_ANSWER = "HT8"
# RoCE uses the same verbs; Google's stacks are different.
_FABRICS: dict[str, LintFabric] = {
    "infiniband": "infiniband",
    "roce": "infiniband",
    "slingshot": "slingshot",
    "efa": "efa",
    "ethernet": "ethernet",
}


class Linter(Value, frozen=True, kw_only=True):
    """The resolved options, for any number of files.

    `silent` has the clusters that did not answer, and are not asked again.
    """

    context: LintContext
    rules: tuple[LintRule, ...]
    site: str | None = None
    fix: bool = False
    ask: bool = False
    silent: dict[SlurmEndpoint, live_cluster.SlurmAnswer] = {}


class Checked(Value, frozen=True, kw_only=True):
    """Findings and fixes of a file; of a job file also the site that it was rendered for."""

    findings: tuple[LintFinding, ...]
    fixed: tuple[LintFinding, ...] = ()
    site: str = ""


def make_linter(
    site: str | None = None,
    *,
    versions: Mapping[str, str | None] = MappingProxyType({}),
    rules: tuple[LintRule, ...] | None = None,
    fix: bool = False,
    ask: bool = False,
) -> Linter:
    """Resolve the options: versions of `nccl` and `slurm`; all rules unless some are given.

    Raises:
        HpcTrainError: an unknown site, an invalid version, or no sbatch to ask.
    """
    if ask and shutil.which("sbatch") is None:
        raise SpecError(
            "--ask: sbatch is not on PATH, so this is not a login node of a Slurm cluster",
            "leave --ask out, or run this on a login node",
        )
    nccl, slurm = versions.get("nccl"), versions.get("slurm")
    context = LintContext(
        nccl=None if nccl is None else parse_version(nccl, "--nccl", NCCL),
        slurm=None if slurm is None else parse_version(slurm, "--slurm", SLURM),
    )
    # The site of this host has nothing to do with a script.
    if site or os.environ.get("HPCTRAIN_SITE"):
        context = _at_site(context, load_choice(choose_site(site))[1].value)
    return Linter(context=context, rules=rules or all_rules(), site=site, fix=fix, ask=ask)


def _at_site(context: LintContext, site: SiteProfile) -> LintContext:
    """Add values of the profile; versions of the command line take precedence."""
    network = site.network
    return replace(
        context,
        site=site,
        fabric=_FABRICS.get(network.fabric or "") if network else None,
        nccl=context.nccl or (network.nccl if network else None),
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
        text, fixed = repair_script(text, linter.context, linter.rules)
    findings = _judged(text, linter, linter.context, PurePath(label).name)
    return Checked(findings=findings, fixed=fixed), text.encode("utf-8", "surrogateescape")


def _judged(
    text: str, linter: Linter, context: LintContext, name: str = "", subject: str = "the script"
) -> tuple[LintFinding, ...]:
    """Apply the rules; with `--ask` those on the answer of Slurm, too."""
    if not linter.ask:
        return lint_script(text, context, linter.rules)
    answer = _ask(text, linter, context.site, name, subject)
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
    alone = replace(linter, ask=linter.ask and prepared.allocation is None)
    context = _at_site(linter.context, prepared.site.site.value)
    for point in prepared.points:
        subject = f"point {point.stem}" if prepared.study else "the script"
        found = _judged(point.script.text, alone, context, subject=subject)
        yield point.script, point.plan, found
    if prepared.allocation is not None and linter.ask:
        script, plan = prepared.allocation, prepared.points[0].plan
        rules = tuple(rule for rule in linter.rules if rule.id.startswith(_ANSWER))
        of_answer = replace(linter, rules=rules)
        found = _judged(script.text, of_answer, context, subject="the allocation")
        yield script, plan, found


_FACTS_TIMEOUT_S = 10.0
_ASSOCIATIONS = "format=Cluster,Account,Partition,QOS,DefaultQOS,MaxSubmit"


def _ask(
    text: str, linter: Linter, site: SiteProfile | None, name: str, subject: str
) -> live_cluster.SlurmAnswer:
    """Return the answer of Slurm about a script; `name` is that of its file."""
    if site is not None and not find_batch_system(site.scheduler).steps:
        words = f"the scheduler of {site.name} is {site.scheduler}, not Slurm"
        return live_cluster.SlurmAnswer(outcome="unanswered", words=words, subject=subject)
    cluster = cluster_of(site) if site else SlurmEndpoint()
    if cluster in linter.silent:
        return replace(linter.silent[cluster], subject=subject)
    directives = read_script(text).live_directives
    options = {option.name: option.value or "" for one in directives for option in one.options}
    # A copy: the script may come from stdin, be rendered, or be fixed just now.
    with tempfile.TemporaryDirectory(prefix="hpctrain-") as folder:
        # sbatch names the job after the file, and a site's plug-in may look at the name.
        path = Path(folder, PurePath(name).name.strip("-") or "job.sbatch")
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        answer = answer_of(ask_sbatch(cluster, path, options))
    if answer.outcome == "unanswered":
        linter.silent[cluster] = answer
    about = set(answer.refusal.options) if answer.refusal and "clusters" not in options else set()
    facts = _resources(cluster) if about else live_cluster.SlurmFacts()
    if about & {"account", "qos"}:
        facts = replace(facts, associations=_accounts(cluster))
    return replace(answer, subject=subject, notices=notices(os.environ, options), facts=facts)


@cache
def _resources(cluster: SlurmEndpoint) -> live_cluster.SlurmFacts:
    """Return the partitions and nodes of a cluster, which a refusal may be about."""
    return live_cluster.SlurmFacts(
        partitions=live_cluster.partitions(
            _output(cluster, "scontrol", "show", "partition", "--oneliner")
        ),
        nodes=live_cluster.nodes(_output(cluster, "scontrol", "show", "node", "--oneliner")),
    )


@cache
def _accounts(cluster: SlurmEndpoint) -> tuple[live_cluster.Association, ...]:
    config = live_cluster.settings(_output(cluster, "scontrol", "show", "config"))
    user = f"user={getpass.getuser()}"
    text = _output(cluster, "sacctmgr", "-P", "show", "assoc", user, _ASSOCIATIONS)
    return live_cluster.associations(text, live_cluster.word(config, "ClusterName"))


def _output(cluster: SlurmEndpoint, *argv: str) -> str:
    """Return the output of a command of Slurm; empty if it fails."""
    done = call_slurm(cluster, *argv, timeout_s=_FACTS_TIMEOUT_S)
    return done.stdout if done.returncode == 0 else ""
