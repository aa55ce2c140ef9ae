"""`hpctrain completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    bash: eval "$(hpctrain completion bash)", for example in ~/.bashrc.
    """
    from hpc_train.cli.group import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"no completion for {shell}")
    click.echo(kind(cli, {}, "hpctrain", "_HPCTRAIN_COMPLETE").source())
