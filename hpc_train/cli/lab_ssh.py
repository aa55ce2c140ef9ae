"""`hpctrain lab up --ssh`."""

from __future__ import annotations

import time

import click


def start_hosts(count: int, folder: str) -> None:
    """Start hosts that ssh reaches, and print how to use them."""
    from hpc_train.cli.busy import busy
    from hpc_train.pipeline.lab import start_ssh_hosts

    begin = time.monotonic()
    with busy("starting the hosts"):
        found = start_ssh_hosts(count, folder)
    took = f"started in {time.monotonic() - begin:.1f} s" if found.is_new else "already running"
    click.echo(f"hosts: {', '.join(found.names)}; {took}")
    click.echo(f"profile: {found.profile}")
    click.echo(f"next: source {found.folder}/env; ssh {found.names[0]}")
    click.echo("      hpctrain submit FILE --site lab-hosts")
