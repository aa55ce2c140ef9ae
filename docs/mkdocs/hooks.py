"""Hooks of MkDocs: the help of each command, and links to files of the checkout outside docs/."""

from __future__ import annotations

import re
from typing import Any

import click
from mkdocs.structure.pages import Page

from hpc_train.cli.group import cli

_OUTSIDE = re.compile(r"\[([^][]+)\]\(\.\./[^)]*\)")
_MARKED = re.compile(r"^(```\w+) .*$", re.MULTILINE)
_COMMANDS = "commands.md"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Replace links to files that the site does not contain by their text.

    A word after the language of a block is for the tests, and would not be read as a block here.
    The page of commands continues with the help of each, which is made from the commands.
    """
    if page.file.src_path == _COMMANDS:
        markdown = "\n".join([markdown, *_sections(cli, "hpctrain")])
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
