"""The group `hpctrain`, which imports its commands late."""

import importlib
import shlex

import click

from hpc_train import __version__
from hpc_train.base.errors import nearest
from hpc_train.base.registry import BUILT_IN
from hpc_train.cli.commands import COMMANDS, examples_text, help_page


class LazyGroup(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of use, not in alphabetical order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        command.epilog = examples_text(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Look up a command; the error for an unknown one names the nearest."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = nearest(args[0], COMMANDS) or "; hpctrain --help lists them"
            if args[0] in BUILT_IN["launchers"]:
                near = f"; hpctrain {shlex.join(('submit', *args))} does it"
            ctx.fail(f"No such command {args[0]!r}{near}")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Return the page of `--help` without importing the commands."""
        return help_page().rstrip()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-v", "--version", prog_name="hpctrain")
def cli() -> None:
    """Run PyTorch training on clusters, and measure how it scales."""


def run() -> object:
    """Run the command of `sys.argv`; return its exit code, or None."""
    try:
        return cli.main(prog_name="hpctrain", standalone_mode=False)
    except click.ClickException as failure:
        failure.show()
        return failure.exit_code
    except click.Abort:
        return 130
