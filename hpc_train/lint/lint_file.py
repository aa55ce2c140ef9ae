"""Files -> findings: scripts, job files as rendered, and with `--ask` the answer of Slurm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from hpc_train.plans.plan import LaunchPlan
    from hpc_train.runs.run import Script
    from hpc_train.sites.profile import SiteProfile

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
    silent: dict[Any, Any] = {}


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
        from hpc_train.sites.detection import choose_site, load_choice

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
        return _lint_job(path, raw, linter)
    checked, fixed = lint_bytes(raw, linter, str(path))
    if fixed == raw:
        return checked
    from hpc_train.runs.json_files import cannot_write, write_file

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
    from hpc_train.lint.ask_slurm import ask_slurm

    answer = ask_slurm(text, context.site, name, subject, linter.silent)
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


def _lint_job(path: Path, raw: bytes, linter: Linter) -> Checked:
    """Render a job file, and return the findings on its scripts at the lines of the job file."""
    from hpc_train.scripts.explain import at_origin
    from hpc_train.scripts.prepare import Request, prepare

    prepared = prepare(Request(path=path, site=linter.site))
    # Slurm judges the scripts that it would get: of a shared allocation, only that one.
    scripts = linter if prepared.allocation is None else replace(linter, ask=False)
    context = _at_site(linter.context, prepared.site.site.value)
    found: dict[LintFinding, None] = {}

    def add(script: Script, plan: LaunchPlan, linter: Linter, subject: str) -> None:
        for finding in _judged(script.text, linter, context, subject=subject):
            # The answer on a whole script has line 1.
            whole = finding.id.startswith(_ANSWER) and finding.line == 1
            found[finding if whole else at_origin(finding, script, plan, str(path))] = None

    for point in prepared.points:
        subject = f"point {point.stem}" if prepared.study else "the script"
        add(point.script, point.plan, scripts, subject)
    if prepared.allocation is not None and linter.ask:
        rules = tuple(rule for rule in linter.rules if rule.id.startswith(_ANSWER))
        of_answer = replace(linter, rules=rules)
        add(prepared.allocation, prepared.points[0].plan, of_answer, "the allocation")
    suppressed = suppressions(read_script(raw.decode("utf-8", "replace")))
    findings = sorted(found, key=lambda one: (one.line, one.id, one.message))
    return Checked(
        findings=tuple(one for one in findings if not suppressed(one.id, one.line)),
        site=prepared.site.name,
    )
