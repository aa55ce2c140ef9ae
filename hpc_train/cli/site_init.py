"""`hpctrain site init`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.cli.complete import sites
from hpc_train.cli.options import path_option

if TYPE_CHECKING:
    from hpc_train.pipeline.site.init import Drafted, InitOptions


@click.command("init")
@click.argument("name", required=False, shell_complete=sites)
@path_option("-o", "--output", help="File to write the draft to.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--probe", is_flag=True, help="Also run a short job on one node of each kind.")
@click.option("--partition", help="Partition of the probe job; default: all.")
@click.option("--srun", "options", multiple=True, help="One more option of the probe job's srun.")
@click.option(
    "--reach", metavar="HOST[:PORT]", help="Let the probe job try one connection to this host."
)
@click.option("--hosts", metavar="HOST,…", help="Machines that ssh reaches, instead of a cluster.")
@click.option("--sagemaker", is_flag=True, help="The account of AWS of this shell.")
def init_site_profile(
    *,
    hosts: str | None,
    sagemaker: bool,
    name: str | None,
    output: Path | None,
    force: bool,
    probe: bool,
    partition: str | None,
    options: tuple[str, ...],
    reach: str | None,
) -> None:
    """Write a draft of a profile: of the local Slurm or PBS, of hosts, or of an account of AWS."""
    from hpc_train.pipeline.site.init import InitOptions

    if sagemaker and (hosts is not None or probe):
        raise click.UsageError("--sagemaker asks AWS; leave out --hosts and --probe")
    if hosts is not None and not hosts.strip(", "):
        raise click.UsageError("--hosts needs names that ssh knows, such as --hosts gpu1,gpu2")
    if hosts and probe:
        raise click.UsageError("--probe asks Slurm, --hosts asks machines by ssh; use one of them")
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
    _say_draft(_draft(wanted, hosts, sagemaker=sagemaker))


def _draft(wanted: InitOptions, hosts: str | None, *, sagemaker: bool) -> Drafted:
    from hpc_train.cli.busy import busy

    if sagemaker:
        from hpc_train.pipeline.site.init_sagemaker import init_sagemaker

        with busy("asking AWS"):
            return init_sagemaker(wanted)
    if hosts:
        from hpc_train.pipeline.site.init_hosts import init_hosts

        names = tuple(filter(None, (name.strip() for name in hosts.split(","))))
        with busy("asking the hosts"):
            return init_hosts(wanted, names)
    from hpc_train.pipeline.site.init import init_site
    from hpc_train.pipeline.site.init_pbs import init_pbs, is_pbs

    if is_pbs():
        if wanted.probe:
            raise click.UsageError("--probe runs a job of Slurm, and this machine has PBS")
        with busy("asking PBS"):
            return init_pbs(wanted)
    with busy("asking Slurm"):
        return init_site(wanted)


def _say_draft(drafted: Drafted) -> None:
    for message in drafted.unread:
        click.echo(f"hpctrain: {message}", err=True)
    guessed = sum("# guessed" in row for row in drafted.text.splitlines())
    questions = sum(row.rstrip().endswith("?") for row in drafted.text.splitlines())
    click.echo(f"{drafted.path}: {guessed} lines are guessed, {questions} questions are open")
    click.echo(f"next: check the file, then hpctrain site show {drafted.path}")
