"""`hpctrain site init`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("init")
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write the draft to.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--probe", is_flag=True, help="Also run a short job on one node of each kind.")
@click.option("--partition", help="Partition of the probe job; default: all.")
@click.option("--srun", "options", multiple=True, help="One more option of the probe job's srun.")
@click.option(
    "--reach", metavar="HOST[:PORT]", help="Let the probe job try one connection to this host."
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
    """Write a draft of a profile of the local Slurm cluster."""
    from hpc_train.pipeline.site.init import InitOptions, init_site

    if not probe and (partition or options or reach):
        raise click.UsageError("--partition, --srun and --reach require --probe")
    wanted = InitOptions(
        name=name,
        output=output,
        force=force,
        probe=probe,
        partition=partition,
        srun=options,
        reach=reach,
    )
    drafted = init_site(wanted)
    for message in drafted.unread:
        click.echo(f"hpctrain: {message}", err=True)
    guessed = sum("# guessed" in row for row in drafted.text.splitlines())
    questions = sum(row.rstrip().endswith("?") for row in drafted.text.splitlines())
    click.echo(f"{drafted.path}: {guessed} lines are guessed, {questions} questions are open")
    click.echo(f"next: check the file, then hpctrain site show {drafted.path}")
