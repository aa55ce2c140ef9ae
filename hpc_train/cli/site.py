"""`hpctrain site`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.complete import sites
from hpc_train.cli.site_check import check_site_profiles
from hpc_train.cli.site_init import init_site_profile
from hpc_train.cli.site_test import test_site

if TYPE_CHECKING:
    from hpc_train.model.detected import Found
    from hpc_train.pipeline.detection.default_site import SiteChoice
    from hpc_train.pipeline.detection.detect import Detection
    from hpc_train.pipeline.site.show import ProfileValue

UNKNOWN = "?"


@click.group()
def site() -> None:
    """List, show, check, draft and test site profiles."""


@site.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_sites(*, as_json: bool) -> None:
    """List the profiles that --site finds."""
    import msgspec

    from hpc_train.cli.output import echo_table, say
    from hpc_train.errors import HpcTrainError
    from hpc_train.pipeline.site import show as listing

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
    import msgspec

    if job:
        from hpc_train.pipeline.site.starter_job import starter_job

        if origin or as_json:
            raise click.UsageError("--job prints a job file; leave out --origin and --json")
        click.echo(starter_job(name), nl=False)
        return

    from hpc_train.cli.output import echo_table
    from hpc_train.model.value import encode_unit
    from hpc_train.pipeline.site.show import show_profile

    rows, sources, unknown = show_profile(name, defaults=origin)
    if as_json:
        answer = {"schema": 1, "values": rows, "sources": sources, "unknown": unknown}
        click.echo(msgspec.json.encode(answer, enc_hook=encode_unit))
        return
    heads = ("key", "value", "origin", "layer", "source")
    cells = [(row.key, _text(row.value), row.origin, row.layer, _mark(row)) for row in rows]
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
    """Print which profile matches this host, and why; on stderr, the site of other commands.

    The result is kept for ten minutes in the user's cache folder; this command examines anew.
    """
    from hpc_train.cli.busy import busy
    from hpc_train.cli.output import say
    from hpc_train.pipeline.detection.default_site import choose_site
    from hpc_train.pipeline.detection.detection_cache import examine_here

    with busy("examining this machine"):
        detection, found = examine_here()
    for unread in detection.unread:
        say(f"warning: {unread}")
    choice = choose_site(None)
    if as_json:
        click.echo(_detected_json(detection, found, choice))
    for match in () if as_json else detection.matches:
        click.echo(f"{match.name}: {', '.join(match.reasons)}")
    if not detection.matches:
        known = ", ".join(detection.known) or "none"
        say(f"no profile matches {found.host}; profiles with `detect`: {known}")
    why = choice.refusal or choice.notice or f"site {choice.name}: $HPCTRAIN_SITE"
    say(f"without --site: {why}")
    if choice.hint:
        say(f"next: {choice.hint}")
    if not detection.matches:
        raise SystemExit(1)


def _detected_json(detection: Detection, found: Found, choice: SiteChoice) -> bytes:
    import msgspec

    answer = {
        "schema": 1,
        "matches": [{"name": one.name, "reasons": one.reasons} for one in detection.matches],
        "unread": detection.unread,
        "scheduler": found.scheduler,
        "site": None if choice.refusal else choice.name,
        "why": choice.refusal or choice.notice or "$HPCTRAIN_SITE",
    }
    return msgspec.json.encode(answer)


@site.command()
@click.option("--keys", is_flag=True, help="Print a table of the keys instead.")
def schema(*, keys: bool) -> None:
    """Print the JSON Schema of profiles, for editors."""
    from hpc_train.cli.output import echo_table
    from hpc_train.pipeline.site.show import site_keys, site_schema

    if keys:
        echo_table(("key", "allowed", "default", "meaning"), site_keys())
    else:
        click.echo(site_schema())


site.add_command(init_site_profile)
site.add_command(check_site_profiles)
site.add_command(test_site)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _mark(row: ProfileValue) -> str:
    return f"[{row.source}]" if row.source else ""
