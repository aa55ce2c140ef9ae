"""Hooks of MkDocs: help of commands, docstrings, catalogues, and links to files outside docs/."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import hpc_train
from hpc_train.base.errors import HpcTrainError
from hpc_train.base.metrics import UNITS
from hpc_train.cli.group import cli
from hpc_train.diagnosis.signatures import PACKAGED, catalogue
from hpc_train.lint.rules import all_rules
from hpc_train.logs.collect import wanted
from hpc_train.logs.read_log import GUESSING, parsers_of, stated
from hpc_train.machine.check_site import key_rows, list_sites

_ROOT = Path(__file__).resolve().parents[2]
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
    """Add the style sheet of the configuration, the README as first page, and the catalogues."""
    files.append(File.generated(config, "tables.css", content=_STYLE))
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    for figure in re.findall(r'<img src="([^"]+)"', readme):
        content = (_ROOT / figure).read_text(encoding="utf-8")
        files.append(File.generated(config, Path(figure).name, content=content))
        readme = readme.replace(figure, Path(figure).name)
    # The site has the pages of docs/ beside this one, and nothing else of the checkout.
    first = re.sub(r"\]\((?!docs/|\w+:)", "](../", readme).replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=first))
    for name, (command, make) in CATALOGUES.items():
        title, _, rest = make().partition("\n")
        head = f"{title}\n\nThis page is what `{command}` prints.\n"
        files.append(File.generated(config, f"{name}.md", content=head + rest))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Replace links to files that the site does not contain by their text.

    A word after the language of a block is for the tests, and would not be read as a block here.
    A command that prints a catalogue is a link to its page. The page of commands continues with
    the help of each, which is made from the commands, and that of Python with the docstrings.
    """
    if page.file.src_path == _COMMANDS:
        markdown = "\n".join([markdown, *_sections(cli, "hpctrain")])
    if page.file.src_path == _PYTHON:
        markdown = "\n".join([markdown, "## Docstrings\n", *_docstrings()])
    for name, (command, _) in CATALOGUES.items():
        if page.file.src_path != f"{name}.md":
            markdown = markdown.replace(f"`{command}`", f"[`{command}`]({name}.md)")
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


_RULES = {
    "HT0": "Header and directives",
    "HT1": "Resources",
    "HT2": "Launchers",
    "HT3": "Rendezvous and devices",
    "HT4": "Exit codes, signals, requeue, variables",
    "HT5": "Names of variables, NCCL",
    "HT6": "MPI and fabrics",
    "HT7": "The site",
    "HT8": "The answer of Slurm",
    "HT9": "PBS",
}


def _lint_rules() -> str:
    parts = ["# Lint rules\n"]
    for start, title in _RULES.items():
        parts.append(f"## {title}\n")
        for rule in all_rules():
            if rule.id.startswith(start):
                severity = rule.severity + (", fixable" if rule.fixable else "")
                parts.append(f"### {rule.id}: {_plain(rule.title)}\n")
                parts.append(f"*{severity}.* {_plain(rule.why)}")
                parts.append(f"Correction: {_plain(rule.advice)}.\n")
    return "\n".join(parts)


def _failures() -> str:
    known = [one for one in catalogue().signatures if one.origin == PACKAGED]
    parts = ["# Failure catalogue\n"]
    for group in dict.fromkeys(one.group for one in known):
        parts.append(f"## {group.replace('_', ' ')}\n")
        for one in known:
            if one.group == group:
                role = ", consequence" if one.role == "consequence" else ""
                title = re.sub(r"(\{\w+\})", r"`\1`", one.title.replace("{of_rank}", ""))
                parts.append(f"### {one.id}\n\n*{one.severity}{role}.* {title}.\n")
                parts.append(f"Why: {_plain(one.cause)}\n\nWhat to do: {_plain(one.advice)}\n")
                parts.append(f"```text\n{_wrapped(one.example)}\n```\n")
                parts.append(", ".join(f"<{source}>" for source in one.sources) + "\n")
    return "\n".join(parts)


def _logs() -> str:
    parts = ["# Supported logs\n", "## Metrics\n", *_table(("metric", "unit"), UNITS.items())]
    parts.append("\n## Formats\n")
    for name, parser in (parsers_of(wanted("auto")) | parsers_of(wanted(GUESSING))).items():
        states = ", ".join(f"`{metric}` {scope}" for metric, scope in stated(parser).items())
        parts.append(f"### {name}\n\n{parser.title}: {states}.\n")
        parts.append(f"```text\n{parser.sample}\n```\n")
    return "\n".join(parts)


def _sites() -> str:
    heads = ("Site", "What", "GPUs of a node", "Fabric", "Launchers", "Verified", "Confidence")
    rows = [
        (
            one.name,
            one.description,
            " / ".join(one.gpus),
            one.fabric,
            ", ".join(one.launchers),
            one.verified_on,
            one.confidence,
        )
        for one in list_sites()
        if not isinstance(one, HpcTrainError) and one.layer == "shipped"
    ]
    return "\n".join(("# The shipped sites\n", *_table(heads, rows)))


def _site_keys() -> str:
    heads = ("key", "allowed", "default", "meaning")
    rows = ((f"`{key}`", *map(_plain, others)) for key, *others in key_rows())
    return "\n".join(("# Site profiles: every key\n", *_table(heads, rows)))


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    every = [[cell.replace("|", "\\|") for cell in row] for row in (heads, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in every]
    return [lines[0], "|---" * len(every[0]) + "|", *lines[1:]]


def _wrapped(text: str) -> str:
    """Break the lines of a block that are wider than a page."""
    wrap = textwrap.TextWrapper(
        100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(map(wrap.fill, text.splitlines()))


def _plain(text: str) -> str:
    """Keep what Markdown would read as emphasis or HTML."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_<])", r"\\\1", part) for part in parts
    )


# Page -> the command that prints it, and what makes it.
CATALOGUES: dict[str, tuple[str, Callable[[], str]]] = {
    "lint": ("hpctrain lint --list", _lint_rules),
    "failures": ("hpctrain diagnose --list", _failures),
    "logs": ("hpctrain collect --list", _logs),
    "sites": ("hpctrain site list", _sites),
    "site-reference": ("hpctrain site schema --keys", _site_keys),
}
