"""`hpctrain site`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.group()
def site() -> None:
    """List, show and draft site profiles."""


@site.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_sites(as_json: bool) -> None:
    """List the profiles that --site finds."""
    from hpc_train.cli.output import echo_table
    from hpc_train.errors import SiteProfileError
    from hpc_train.sites.load import load_site
    from hpc_train.sites.search import profile_files

    rows: list[dict[str, Any]] = []
    for path in profile_files():
        try:
            profile = load_site(str(path)).value
        except SiteProfileError as failure:
            click.echo(f"hpctrain: warning: {failure.message}", err=True)
            continue
        rows.append(
            {
                "name": profile.name,
                "scheduler": profile.scheduler,
                "launchers": list(profile.launchers.allowed),
                "description": profile.description,
                "file": str(path),
            }
        )
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(rows))
        return
    cells = [(r["name"], r["scheduler"], " ".join(r["launchers"]), r["description"]) for r in rows]
    echo_table(("name", "scheduler", "launchers", "description"), cells)


@site.command()
@click.argument("name")
def show(name: str) -> None:
    """Show what a profile says, and where each value stands; what is not there is unknown."""
    from hpc_train.cli.output import echo_table
    from hpc_train.sites.load import load_site

    profile = load_site(name)
    rows = [
        (key, text, profile.origin(key))
        for key, text in _leaves(_plain(profile.value), "")
        if text not in ("None", "{}", "")
    ]
    echo_table(("key", "value", "origin"), rows)


@site.command()
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File of the draft.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--probe", is_flag=True, help="Run a short job on a node of each kind.")
@click.option("--partition", help="Of the probe job; default: all.")
@click.option("--srun", "options", multiple=True, help="One more option of the probe job's srun.")
@click.option(
    "--reach", metavar="HOST[:PORT]", help="The probe job tries one connection to this host."
)
def init(
    *,
    name: str | None,
    output: Path | None,
    force: bool,
    probe: bool,
    partition: str | None,
    options: tuple[str, ...],
    reach: str | None,
) -> None:
    """Write a draft of the profile of the cluster that Slurm's commands talk to."""
    from hpc_train.pipeline.site_init import Wish, init_site
    from hpc_train.probe.job import ProbeJob

    if not probe and (partition or options or reach):
        raise click.UsageError("--partition, --srun and --reach belong to --probe")
    job = ProbeJob(partition=partition, options=options, reach=reach) if probe else None
    drafted = init_site(Wish(name=name, output=output, force=force, job=job))
    for said in drafted.unread:
        click.echo(f"hpctrain: {said}", err=True)
    guessed = sum("# guessed" in row for row in drafted.text.splitlines())
    asked = sum(row.rstrip().endswith("?") for row in drafted.text.splitlines())
    click.echo(f"{drafted.path}: {guessed} lines are guessed, {asked} questions are open")
    click.echo(f"next: read it, then hpctrain site show {drafted.path}")


@site.command()
@click.option("--markdown", is_flag=True, help="The page docs/site-reference.md instead.")
def schema(*, markdown: bool) -> None:
    """Print the JSON Schema of profiles, for editors."""
    from hpc_train.pipeline.reference import site_reference
    from hpc_train.pipeline.schema import json_schema

    if markdown:
        click.echo(site_reference(), nl=False)
    else:
        click.echo(json_schema("site"))


def _plain(value: Any) -> Any:
    import msgspec

    from hpc_train.model.value import encode_unit

    return msgspec.to_builtins(value, enc_hook=encode_unit)


def _leaves(value: Any, path: str) -> list[tuple[str, str]]:
    """Return the values of a tree with their dotted keys."""
    if isinstance(value, dict) and value:
        items = value.items()
    elif isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        items = {str(i): item for i, item in enumerate(value)}.items()
    else:
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        return [(path, text)]
    return [
        leaf for key, item in items for leaf in _leaves(item, f"{path}.{key}" if path else str(key))
    ]
