"""`hpctrain lint`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hpc_train import __version__
from hpc_train.base.errors import HpcTrainError, SpecError
from hpc_train.cli.output import busy, echo_table, say

if TYPE_CHECKING:
    from hpc_train.base.values import LintFinding
    from hpc_train.lint.lint_file import Checked, Linter
    from hpc_train.lint.rule import LintRule


@click.command()
@click.argument("files", nargs=-1, metavar="FILE…", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON: --format json.")
@click.option(
    "-f", "--format", "form",
    type=click.Choice(["text", "json", "github", "sarif"]),
    help="Annotations of GitHub Actions, or SARIF 2.1.0 for code scanning; default: text.",
)  # fmt: skip
@click.option("--fix", is_flag=True, help="Fix findings in the file if the fix is safe.")
@click.option("--site", help="Site profile with the limits to check: a name or a file.")
@click.option("--nccl", metavar="VERSION", help="Version of NCCL, e.g. 2.21.5.")
@click.option("--slurm", metavar="VERSION", help="Version of Slurm, e.g. 24.11.5.")
@click.option("--ask", is_flag=True, help="Also ask Slurm: sbatch --test-only. Submits nothing.")
@click.option("--select", multiple=True, metavar="IDS", help="Apply only these rules: HT303,HT5.")
@click.option("--ignore", multiple=True, metavar="IDS", help="Do not apply these rules.")
@click.option(
    "--list", "as_list", is_flag=True, help="List the rules, or explain those of --select."
)
def lint(
    files: tuple[Path, ...],
    as_json: bool,
    form: str | None,
    fix: bool,
    site: str | None,
    nccl: str | None,
    slurm: str | None,
    ask: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    as_list: bool,
) -> None:
    """Find errors in any job script, and print what to write instead.

    FILE is a script, a job file, or - for stdin. Exit code 0: no warnings or errors; 1: warnings or
    errors; 2: a file cannot be read.
    """
    from hpc_train.lint.lint_file import make_linter
    from hpc_train.lint.lint_script import chosen_rules

    as_json = as_json if form is None else form == "json"
    rules = chosen_rules(select, ignore)
    if as_list:
        return _print_rules(rules, as_json, bool(select))
    if not files:
        raise click.UsageError("name a file, or --list")
    versions = {"nccl": nccl, "slurm": slurm}
    linter = make_linter(site, versions=versions, rules=rules, fix=fix, ask=ask)
    checked, failed = _check(files, linter)
    if as_json:
        _print_json(checked, fix)
    elif form == "sarif":
        _print_sarif(checked)
    elif form == "github":
        _print_annotations(checked)
    else:
        _print_text(checked, fix)
    found = {finding.severity for one in checked.values() for finding in one.findings}
    sys.exit(2 if failed else int(bool(found & {"error", "warning"})))


def _check(files: tuple[Path, ...], linter: Linter) -> tuple[dict[Path, Checked], bool]:
    """Check each file; a file that cannot be read is reported, and the others are checked."""
    from hpc_train.lint.lint_file import lint_bytes, lint_file

    checked: dict[Path, Checked] = {}
    failed = False
    with busy(lambda: f"checking job scripts, {len(checked)} of {len(files)}"):
        for path in files:
            is_stdin = str(path) == "-"
            try:
                if is_stdin and linter.fix:
                    raise SpecError("-: --fix changes files, not stdin")
                if is_stdin:
                    checked[path] = lint_bytes(sys.stdin.buffer.read(), linter, "-")[0]
                else:
                    checked[path] = lint_file(path, linter)
            except HpcTrainError as failure:
                failed = True
                say(failure.message)
                if failure.hint:
                    click.echo(f"  {failure.hint}", err=True)
    return checked, failed


def _print_json(checked: dict[Path, Checked], fix: bool) -> None:

    def rows(path: Path, findings: tuple[LintFinding, ...]) -> list[dict[str, object]]:
        names = ("id", "severity", "line", "message", "advice")
        return [{"file": str(path), **{n: getattr(one, n) for n in names}} for one in findings]

    answer: dict[str, object] = {
        "schema": 1,
        "findings": [row for path, one in checked.items() for row in rows(path, one.findings)],
    }
    if fix:
        answer["fixed"] = [row for path, one in checked.items() for row in rows(path, one.fixed)]
    click.echo(msgspec.json.encode(answer))


def _print_annotations(checked: dict[Path, Checked]) -> None:
    """Print the workflow commands of GitHub Actions, in which these characters are escaped."""
    levels = {"error": "error", "warning": "warning", "info": "notice"}
    for path, one in checked.items():
        for finding in one.findings:
            text = f"{finding.message}: {finding.advice}".replace("%", "%25")
            text = text.replace("\r", "%0D").replace("\n", "%0A")
            file = str(path).replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
            place = f"file={file},line={finding.line},title={finding.id}"
            click.echo(f"::{levels[finding.severity]} {place}::{text}")


def _print_sarif(checked: dict[Path, Checked]) -> None:
    """Print a log of SARIF 2.1.0 with the rules that found something."""
    from urllib.parse import quote

    from hpc_train.lint.rules import all_rules

    levels = {"error": "error", "warning": "warning", "info": "note"}
    found = [(path, finding) for path, one in checked.items() for finding in one.findings]
    ids = {finding.id for _, finding in found}
    rules = [
        {"id": rule.id, "shortDescription": {"text": rule.title}, "help": {"text": rule.why}}
        for rule in all_rules()
        if rule.id in ids
    ]
    results = [
        {
            "ruleId": finding.id,
            "level": levels[finding.severity],
            "message": {"text": f"{finding.message}: {finding.advice}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {
                            "uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())
                        },
                        "region": {"startLine": finding.line},
                    }
                }
            ],
        }
        for path, finding in found
    ]
    driver = {"name": "hpctrain", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    click.echo(msgspec.json.encode({"$schema": schema, "version": "2.1.0", "runs": [run]}))


def _print_text(checked: dict[Path, Checked], fix: bool) -> None:
    for path, one in checked.items():
        for finding in one.fixed:
            click.echo(f"{path}:{finding.line}: {finding.id} fixed: {finding.message}", err=True)
        for finding in one.findings:
            click.echo(
                f"{path}:{finding.line}: {finding.id} {finding.severity}: {finding.message}\n"
                f"    {finding.advice}"
            )
    counts = Counter(finding.severity for one in checked.values() for finding in one.findings)
    counts_text = [
        f"{counts[severity]} {severity}{'s' * (counts[severity] > 1)}"
        for severity in ("error", "warning", "info")
        if counts[severity]
    ]
    if not checked:
        return
    places = f"{len(checked)} file{'s' * (len(checked) != 1)}"
    sites = dict.fromkeys(one.site for one in checked.values() if one.site)
    places += f", jobs as rendered for {', '.join(sites)}" if sites else ""
    unfixed = "nothing to fix; " * (fix and not any(one.fixed for one in checked.values()))
    found = ", ".join(counts_text) or "nothing found"
    click.echo(f"hpctrain: {unfixed}{found} in {places}", err=True)


def _print_rules(rules: tuple[LintRule, ...], as_json: bool, explain: bool) -> None:

    if as_json:
        names = ("id", "severity", "title", "why", "advice", "fixable")
        rows = [{name: getattr(rule, name) for name in names} for rule in rules]
        click.echo(msgspec.json.encode({"schema": 1, "rules": rows}))
    elif explain:
        for rule in rules:
            fixable = ", fixable" if rule.fixable else ""
            click.echo(f"{rule.id} {rule.severity}{fixable}: {rule.title}")
            click.echo(f"    {rule.why}\n    Correction: {rule.advice}.")
    else:
        cells = [(r.id, r.severity, "fixable" if r.fixable else "", r.title) for r in rules]
        echo_table(("id", "severity", "", "rule"), cells)
