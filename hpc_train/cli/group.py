"""The click classes of `hpctrain`: a group that imports its commands late, commands of scripts."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from hpc_train.cli.commands import COMMANDS, EXAMPLES, examples_text, help_page
from hpc_train.errors import nearest
from hpc_train.version import VERSION

_ALIKE = 0.75


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
        command.epilog = examples_text(cmd_name) if cmd_name in EXAMPLES else None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Look up a command; the error for an unknown one names the nearest."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            meant = nearest(args[0], COMMANDS)
            ctx.fail(f"No such command {args[0]!r}{meant}")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Return the page of `--help` without importing the commands."""
        return help_page().rstrip()


class JobCommand(click.Command):
    """A command whose error for an unknown option names the place of the script's own options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line.

        Raises:
            click.UsageError: an unknown option, with the command to type.
        """
        # Click empties the list.
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as failure:
            script = next((word for word in words if _is_script(word)), None)
            if script is None:
                raise
            raise click.UsageError(self._advice(failure.option_name, words, script), ctx) from None

    def _advice(self, name: str, words: Sequence[str], script: str) -> str:
        import difflib
        import shlex

        known = [name for option in self.params for name in option.opts if name.startswith("--")]
        alike = difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
        meant = f" Did you mean {alike[0]!r}?" if alike else ""
        typed = shlex.join(["hpctrain", self.name or "", *_reordered(words, script, known)])
        return f"No such option {name!r}.{meant} Options of {script} follow after --:\n  {typed}"


def _is_script(word: str) -> bool:
    path = Path(word)
    return path.suffix not in (".yaml", ".yml") and (path.suffix == ".py" or path.is_file())


def _reordered(words: Sequence[str], script: str, known: Sequence[str]) -> Iterator[str]:
    """Yield the words with `--` before the options of the script, which are the unknown ones."""
    given = list(words)
    own = given[given.index("--") + 1 :] if "--" in given else []
    moved, is_moved = [], False
    for word in given[: given.index("--")] if "--" in given else given:
        if word.startswith("-"):
            is_moved = word.partition("=")[0] not in known
        if is_moved and word != script:
            moved.append(word)
        else:
            yield word
    yield from ("--", *moved, *own)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "--version", prog_name="hpctrain")
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
