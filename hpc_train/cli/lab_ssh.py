"""`hpctrain lab up --ssh`."""

from __future__ import annotations

import time

import click

_OPTIONS = ("nodes", "folder", "ssh")


def start_hosts(ctx: click.Context, count: int, folder: str) -> None:
    """Start hosts that ssh reaches, and print how to use them.

    Raises:
        click.UsageError: an option of the Slurm lab was given.
    """
    from hpc_train.cli.busy import busy
    from hpc_train.pipeline.lab import start_ssh_hosts

    stated = click.core.ParameterSource.COMMANDLINE
    for name in ctx.params:
        if name not in _OPTIONS and ctx.get_parameter_source(name) is stated:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} is an option of Slurm's nodes, not of --ssh", ctx)
    begin = time.monotonic()
    with busy("starting the hosts"):
        found = start_ssh_hosts(count, folder)
    took = f"started in {time.monotonic() - begin:.1f} s" if found.is_new else "already running"
    click.echo(f"hosts: {', '.join(found.names)}; {took}")
    click.echo(f"profile: {found.profile}")
    click.echo(f"next: source {found.folder}/env; ssh {found.names[0]}")
    click.echo("      hpctrain submit FILE --site lab-hosts")
