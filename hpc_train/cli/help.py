"""`hpctrain help` and `hpctrain completion`."""

import sys

import click

from hpc_train.cli.commands import COMMANDS
from hpc_train.cli.output import echo_table


@click.command("help")
@click.argument("topic", required=False)
def help_topic(topic: str | None) -> None:
    """Print a page of the documentation or the help of a command, or list the pages.

    \b
    hpctrain help files
    hpctrain help events

    On a terminal the page is shown in the pager of $PAGER.
    """
    from hpc_train.base.data_folders import page_text, page_titles

    if topic is None:
        echo_table(("topic", "page"), list(page_titles().items()))
        return
    if topic in COMMANDS and topic not in page_titles():
        root = click.get_current_context().find_root().command
        root.main([topic, "--help"], prog_name="hpctrain", standalone_mode=False)
        return
    text = page_text(topic, COMMANDS)
    if sys.stdout.isatty():
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    bash: eval "$(hpctrain completion bash)", for example in ~/.bashrc.
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"no completion for {shell}")
    click.echo(kind(root, {}, "hpctrain", "_HPCTRAIN_COMPLETE").source())
