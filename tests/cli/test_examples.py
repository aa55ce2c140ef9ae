"""The examples in the help of each command: complete, printed, and accepted by its parser."""

import shlex
from contextlib import suppress

import click
import pytest

from hpc_train.cli.commands import EXAMPLES
from hpc_train.cli.group import cli

EVERY = [line for lines in EXAMPLES.values() for line in lines]


def check_parsed(line: str) -> None:
    """Check that the words of a command line are options and arguments of its command."""
    program, *words = shlex.split(line)
    assert program == "hpctrain"
    group: click.Command = cli
    # Click keeps the options of help that a command was asked for first.
    context = click.Context(cli, info_name=program, **cli.context_settings)
    while isinstance(group, click.Group) and (group is cli or words[0] in group.commands):
        _, command, words = group.resolve_command(context, words)
        assert command is not None
        context = click.Context(command, parent=context, info_name=command.name)
        group = command
    # What prints a page or a schema does so here, and leaves.
    with suppress(click.exceptions.Exit):
        parsed = group.make_context(group.name, list(words), parent=context.parent)
        assert not set(parsed.args) - set(words)


@pytest.mark.parametrize("line", EVERY)
def test_an_example_is_parsed(line: str) -> None:
    check_parsed(line)
