"""`hpctrain site init`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("init")
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File of the draft.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--probe", is_flag=True, help="Run a short job on a node of each kind.")
@click.option("--partition", help="Of the probe job; default: all.")
@click.option("--srun", "options", multiple=True, help="One more option of the probe job's srun.")
@click.option(
    "--reach", metavar="HOST[:PORT]", help="The probe job tries one connection to this host."
)
def init_site_profile(
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
    from hpc_train.pipeline.sites.drafting import Wish, init_site
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
