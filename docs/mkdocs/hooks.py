"""Hooks of MkDocs: the page of commands, and links to files of the checkout outside docs/."""

from __future__ import annotations

import re
from typing import Any

import click
from mkdocs.structure.files import File, Files

from hpc_train.cli.group import cli

_OUTSIDE = re.compile(r"\[([^][]+)\]\(\.\./[^)]*\)")
_MARKED = re.compile(r"^(```\w+) .*$", re.MULTILINE)
_HEAD = """# Commands

The texts that `hpctrain COMMAND --help` prints. Exit codes of all commands: 0 done, 1 failed,
2 invalid input, 3 a partial result.
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the page of commands, which is made from the commands themselves."""
    page = "\n".join([_HEAD, *_sections(cli, "hpctrain")])
    files.append(File.generated(config, "commands.md", content=page))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace links to files that the site does not contain by their text.

    A word after the language of a block is for the tests, and would not be read as a block here.
    """
    return _MARKED.sub(r"\1", _OUTSIDE.sub(r"\1", markdown))


def _sections(command: click.Command, name: str) -> list[str]:
    context = click.Context(command, info_name=name)
    found = [f"## `{name}`\n\n```text\n{command.get_help(context)}\n```\n"]
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            if below is not None and not below.hidden:
                found += _sections(below, f"{name} {word}")
    return found
