"""`hpctrain site`."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hpc_train.base.data_folders import schema_file
from hpc_train.base.errors import HpcTrainError, ProbeError
from hpc_train.base.values import encode_unit, has_errors
from hpc_train.cli.options import path_option, sites
from hpc_train.cli.output import busy, echo_table, say

if TYPE_CHECKING:
    from hpc_train.machine.check_site import ProfileCheck
    from hpc_train.pbs.live_pbs import LivePbs
    from hpc_train.slurm.live_cluster import Cluster

# Exit code of --live if Slurm, or a part of its answers, could not be read.
_UNREAD = 3


@click.group()
def site() -> None:
    """List, show, check and draft site profiles."""


@site.command("check")
@click.argument("names", metavar="NAME|FILE...", nargs=-1, required=True, shell_complete=sites)
@click.option("--live", is_flag=True, help="Also compare one profile with the local Slurm or PBS.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_site_profiles(names: tuple[str, ...], *, live: bool, as_json: bool) -> None:
    """Check the file and the sources of profiles, and that jobs can be planned with them.

    With --live, one profile is also compared with the answers of the local Slurm or PBS.
    The exit code is 1 if there are errors or differences, 2 if a file is no valid profile, and 3
    if --live could not read something.
    """

    from hpc_train.machine.check_site import check_site

    if live:
        _check_live(names, as_json=as_json)
        return
    today = datetime.date.today()
    checks: dict[str, ProfileCheck] = {}
    with busy(lambda: f"checking profiles, {len(checks)} of {len(names)}"):
        for name in names:
            checks[name] = check_site(name, today)
    if as_json:
        keys = ("severity", "place", "message")
        rows = {
            name: {
                "complaints": [{key: getattr(one, key) for key in keys} for one in check.findings],
                "jobs": check.jobs,
            }
            for name, check in checks.items()
        }
        click.echo(msgspec.json.encode({"schema": 1, "checks": rows}))
    for name, check in () if as_json else checks.items():
        for one in check.findings:
            place = f"{one.place}: " if one.place else ""
            click.echo(f"{one.severity}: {place}{one.message}")
        if check.loaded:
            errors = sum(one.severity == "error" for one in check.findings)
            jobs = f"{check.jobs} job{'' if check.jobs == 1 else 's'}"
            found = f"{errors} error{'' if errors == 1 else 's'}"
            click.echo(f"{name}: {jobs} planned, rendered and checked; {found}")
    if not all(check.loaded for check in checks.values()):
        raise SystemExit(2)
    if any(has_errors(check.findings) for check in checks.values()):
        raise SystemExit(1)


def _check_live(names: tuple[str, ...], *, as_json: bool) -> None:

    from hpc_train.machine.drift import check_live

    if len(names) != 1:
        raise click.UsageError("--live compares one profile with the local cluster")
    try:
        with busy("asking the scheduler"):
            name, cluster, check = check_live(names[0])
    except ProbeError as failure:
        failure.exit_code = _UNREAD
        raise
    for unread in cluster.unread:
        say(unread)
    if as_json:
        answer = {"schema": 1, "cluster": cluster.name, "version": cluster.version}
        answer |= {
            "unread": cluster.unread,
            "compared": check.compared,
            "differences": check.differences,
        }
        click.echo(msgspec.json.encode(answer))
    elif check.differences:
        rows = [(one.key, one.profile, one.cluster, one.place) for one in check.differences]
        echo_table(("key", "profile", f"cluster {cluster.name}", "place"), rows)
    else:
        click.echo(_same(check.compared, name, cluster))
    if check.differences:
        raise SystemExit(1)
    if cluster.unread or not check.compared:
        raise SystemExit(_UNREAD)


def _same(compared: int, name: str, cluster: Cluster | LivePbs) -> str:
    if not compared:
        return f"nothing to compare: {name} states nothing that the cluster {cluster.name} shows"
    rest = "; the rest could not be read" if cluster.unread else ""
    values = f"{compared} value{'' if compared == 1 else 's'}"
    version = f"; version {cluster.version}" if cluster.version else ""
    return f"{name} and the cluster {cluster.name} agree: {values}{rest}{version}"


@site.command("init")
@click.argument("name", required=False, shell_complete=sites)
@path_option("-o", "--output", help="File to write the draft to.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--probe", is_flag=True, help="Also run a short job on one node of each kind.")
@click.option("--partition", help="Partition of the probe job; default: all.")
@click.option("--srun", multiple=True, help="One more option of the probe job's srun.")
@click.option("--hosts", metavar="HOST,…", help="Machines that ssh reaches, instead of a cluster.")
def init_site_profile(*, hosts: str | None, **options: Any) -> None:
    """Write a draft of a profile: of the local Slurm or PBS, or of hosts."""
    from hpc_train.machine.init_site import InitOptions, init_site

    wanted = InitOptions(**options)
    if hosts is not None and not hosts.strip(", "):
        raise click.UsageError("--hosts needs names that ssh knows, such as --hosts gpu1,gpu2")
    if hosts and wanted.probe:
        raise click.UsageError("--probe asks Slurm, --hosts asks machines by ssh; use one of them")
    if not wanted.probe and (wanted.partition or wanted.srun):
        raise click.UsageError("--partition and --srun require --probe")
    names = [name.strip() for name in (hosts or "").split(",") if name.strip()]
    with busy("asking the hosts" if names else "asking the scheduler"):
        drafted = init_site(wanted, names)
    for message in drafted.unread:
        click.echo(f"hpctrain: {message}", err=True)
    guessed = sum("# guessed" in row for row in drafted.text.splitlines())
    questions = sum(row.rstrip().endswith("?") for row in drafted.text.splitlines())
    click.echo(f"{drafted.path}: {guessed} lines are guessed, {questions} questions are open")
    click.echo(f"next: check the file, then hpctrain site show {drafted.path}")


UNKNOWN = "?"


@site.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_sites(*, as_json: bool) -> None:
    """List the profiles that --site finds."""

    from hpc_train.machine import check_site as listing

    rows: list[listing.ProfileSummary] = []
    for found in listing.list_sites():
        if isinstance(found, HpcTrainError):
            say(f"warning: {found.message}")
        else:
            rows.append(found)
    if as_json:
        click.echo(msgspec.json.encode(rows))
        return
    cells = [
        (
            row.name,
            " | ".join(row.gpus) or UNKNOWN,
            row.fabric or UNKNOWN,
            " ".join(row.launchers),
            row.verified_on or UNKNOWN,
            row.confidence or UNKNOWN,
        )
        for row in rows
    ]
    echo_table(("name", "GPUs", "fabric", "launchers", "verified", "confidence"), cells)


@site.command()
@click.argument("name", shell_complete=sites)
@click.option("--origin", is_flag=True, help="Print the file, line and source of each value.")
@click.option("--job", is_flag=True, help="Print a job file for the site instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, *, origin: bool, job: bool, as_json: bool) -> None:
    """Print the values of a profile, and the keys that are unknown."""

    if job:
        from hpc_train.machine.starter_job import starter_job

        if origin or as_json:
            raise click.UsageError("--job prints a job file; leave out --origin and --json")
        click.echo(starter_job(name), nl=False)
        return

    from hpc_train.machine.check_site import show_profile

    rows, sources, unknown = show_profile(name, defaults=origin)
    if as_json:
        answer = {"schema": 1, "values": rows, "sources": sources, "unknown": unknown}
        click.echo(msgspec.json.encode(answer, enc_hook=encode_unit))
        return
    heads = ("key", "value", "origin", "layer", "source")
    cells = [
        (row.key, _text(row.value), row.origin, row.layer, f"[{row.source}]" * bool(row.source))
        for row in rows
    ]
    width = len(heads) if origin else 2
    echo_table(heads[:width], [cell[:width] for cell in cells])
    for number, source in enumerate(sources, 1):
        date = f", {source.date}" if source.date else ""
        click.echo(f"[{number}] {source.what}{date}: confidence {source.confidence}")
    if unknown:
        click.echo(f"not known: {', '.join(unknown)}")


@site.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def detect(*, as_json: bool) -> None:
    """Print which profile matches this host, and why; on stderr, the site of other commands."""
    from hpc_train.sites.detection import choose_site, detect_site, this_host

    with busy("examining this machine"):
        found = detect_site(this_host())
    for unread in found.unread:
        say(f"warning: {unread}")
    choice = choose_site(None)
    if as_json:
        answer = {
            "schema": 1,
            "matches": [{"name": one.name, "reasons": one.reasons} for one in found.matches],
            "unread": found.unread,
            "scheduler": found.scheduler,
            "site": None if choice.refusal else choice.name,
            "why": choice.refusal or choice.notice or "$HPCTRAIN_SITE",
        }
        click.echo(msgspec.json.encode(answer))
    for match in () if as_json else found.matches:
        click.echo(f"{match.name}: {', '.join(match.reasons)}")
    if not found.matches:
        known = ", ".join(found.known) or "none"
        say(f"no profile matches {found.host}; profiles with `detect`: {known}")
    why = choice.refusal or choice.notice or f"site {choice.name}: $HPCTRAIN_SITE"
    say(f"without --site: {why}")
    if choice.hint:
        say(f"next: {choice.hint}")
    if not found.matches:
        raise SystemExit(1)


@site.command()
@click.option("--keys", is_flag=True, help="Print a table of the keys instead.")
def schema(*, keys: bool) -> None:
    """Print the JSON Schema of profiles, for editors."""
    if keys:
        from hpc_train.machine.check_site import key_rows

        echo_table(("key", "allowed", "default", "meaning"), list(key_rows()))
    else:
        click.echo(msgspec.json.format(schema_file("site").read_bytes(), indent=2))


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    # As a profile has it.
    return str(value).lower() if isinstance(value, bool) else str(value)
