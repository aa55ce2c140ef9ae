"""`hpctrain site check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hpc_train.cli.complete import sites

if TYPE_CHECKING:
    from hpc_train.model.live_cluster import Cluster
    from hpc_train.model.live_pbs import LivePbs
    from hpc_train.pipeline.site.check import ProfileCheck, ProfileFinding

# Exit code of --live if Slurm, or a part of its answers, could not be read.
_UNREAD = 3


@click.command("check")
@click.argument("names", metavar="NAME|FILE...", nargs=-1, required=True, shell_complete=sites)
@click.option("--live", is_flag=True, help="Also compare one profile with the local Slurm or PBS.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_site_profiles(names: tuple[str, ...], *, live: bool, as_json: bool) -> None:
    """Check the file and the sources of profiles, and that jobs can be planned with them.

    With --live, one profile is also compared with the answers of the local Slurm or PBS.
    The exit code is 1 if there are errors or differences, 2 if a file is no valid profile, and 3
    if --live could not read something.
    """
    import datetime

    import msgspec

    from hpc_train.cli.busy import busy
    from hpc_train.model.finding import has_errors
    from hpc_train.pipeline.site.check import check_site

    if live:
        _check_live(names, as_json=as_json)
        return
    today = datetime.date.today()
    checks: dict[str, ProfileCheck] = {}
    with busy(lambda: f"checking profiles, {len(checks)} of {len(names)}"):
        for name in names:
            checks[name] = check_site(name, today)
    if as_json:
        rows = {
            name: {"complaints": [_row(one) for one in check.findings], "jobs": check.jobs}
            for name, check in checks.items()
        }
        click.echo(msgspec.json.encode({"schema": 1, "checks": rows}))
    for name, check in () if as_json else checks.items():
        for one in check.findings:
            place = f"{one.place}: " if one.place else ""
            click.echo(f"{one.severity}: {place}{one.message}")
        if check.loaded:
            click.echo(_summary(name, check))
    if not all(check.loaded for check in checks.values()):
        raise SystemExit(2)
    if any(has_errors(check.findings) for check in checks.values()):
        raise SystemExit(1)


def _summary(name: str, check: ProfileCheck) -> str:
    errors = sum(one.severity == "error" for one in check.findings)
    jobs = f"{check.jobs} job{'' if check.jobs == 1 else 's'}"
    found = f"{errors} error{'' if errors == 1 else 's'}"
    return f"{name}: {jobs} planned, rendered and checked; {found}"


def _row(finding: ProfileFinding) -> dict[str, str]:
    return {"severity": finding.severity, "place": finding.place, "message": finding.message}


def _check_live(names: tuple[str, ...], *, as_json: bool) -> None:
    import msgspec

    from hpc_train.cli.busy import busy
    from hpc_train.cli.output import echo_table, say
    from hpc_train.errors import ProbeError
    from hpc_train.pipeline.site.live_check import check_live

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
