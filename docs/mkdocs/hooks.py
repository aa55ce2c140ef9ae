"""Hooks of MkDocs: help of commands, docstrings, and links to files outside docs/."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import click
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import hpc_train
from hpc_train.cli.group import cli

_OUTSIDE = re.compile(r"\[([^][]+)\]\(\.\./[^)]*\)")
_MARKED = re.compile(r"^(```\w+) .*$", re.MULTILINE)
_COMMANDS = "commands.md"
_PYTHON = "python.md"
_WIDTH = 80
# Tables of seven columns fit beside the list of pages.
_STYLE = """.md-typeset table:not([class]) :is(th, td) {
  min-width: 3.2rem;
  padding: 0.6em 0.7em;
}
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the style sheet that the configuration names."""
    files.append(File.generated(config, "tables.css", content=_STYLE))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Replace links to files that the site does not contain by their text.

    A word after the language of a block is for the tests, and would not be read as a block here.
    The page of commands continues with the help of each, which is made from the commands, and that
    of Python with the docstrings.
    """
    if page.file.src_path == _COMMANDS:
        markdown = "\n".join([markdown, *_sections(cli, "hpctrain")])
    if page.file.src_path == _PYTHON:
        markdown = "\n".join([markdown, "## Docstrings\n", *_docstrings()])
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


def _docstrings() -> Iterator[str]:
    for name in sorted(hpc_train.__all__, key=lambda name: name[0].isupper()):
        thing = getattr(hpc_train, name)
        if not callable(thing):
            continue
        yield _described(f"### `hpc_train.{name}`", name, thing)
        for word in _members(thing) if inspect.isclass(thing) else ():
            yield _described(f"#### `{name}.{word}`", word, inspect.getattr_static(thing, word))


def _members(kind: type) -> list[str]:
    """Return the public names of a class that have a docstring of their own."""
    found = (word for word in dir(kind) if not word.startswith("_"))
    return [word for word in found if inspect.getdoc(getattr(kind, word))]


def _described(heading: str, name: str, thing: Any) -> str:
    """Return a signature as code, and the docstring with its errors as a list."""
    said, _, errors = (inspect.getdoc(thing) or "").partition("\nRaises:\n")
    parts = [heading]
    if inspect.isfunction(thing):
        parts.append(f"```text\n{name}{_parameters(thing)}\n```")
    parts.append(said.strip())
    if errors:
        listed = re.sub(
            r"^(\S[^:]*): ", r"- **\1:** ", inspect.cleandoc(errors), flags=re.MULTILINE
        )
        parts += ["Raises:", listed]
    return "\n\n".join(parts) + "\n"


def _parameters(function: Callable[..., object]) -> str:
    """Return a signature, each parameter on its own line if one line is too long for a page."""
    # Annotations are texts; the page shows them as they are written in the code.
    line = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    if len(line) <= _WIDTH:
        return line
    kept, _, returned = line.rpartition(" -> ")
    # `*` and `/` are no parameters; the text of a parameter contains commas.
    parts = re.split(r", (?=\*{0,2}\w+(?::|=|$)|\*, )", kept[1:-1])
    return "(\n    " + ",\n    ".join(parts) + f",\n) -> {returned}"
