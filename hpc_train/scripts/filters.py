"""How values enter a shell script: quoted once, by their kind."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from hpc_train.errors import RenderError
from hpc_train.model.plan import DIRECTIVE_VALUE, JobVar, Text, Token

WIDTH = 92


def sh(value: str) -> str:
    """Quote literal text for the shell; `==` after a name would look like a comparison."""
    quoted = shlex.quote(str(value))
    return f"'{quoted}'" if quoted.startswith("=") else quoted


def line(value: str) -> str:
    """Quote literal text in one line: a line of its own could end a here-document."""
    if "\n" not in value:
        return sh(value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"$'{escaped}'"


def token(value: Token) -> str:
    """Write a literal quoted, a job variable as a quoted expansion."""
    return sh(value.text) if isinstance(value, Text) else f'"${value.name}"'


def required(value: Token) -> str:
    """Like `token`, but a variable that the launcher did not set stops the rank with a word."""
    if isinstance(value, JobVar):
        return f'"${{{value.name}:?the launcher did not set it}}"'
    return token(value)


def directive(value: str) -> str:
    """Check a value of an sbatch option, which follows none of the shell's quoting rules.

    Raises:
        RenderError: a blank, a quote or a line break, which could become another option.
    """
    if not DIRECTIVE_VALUE.fullmatch(value):
        raise RenderError(f"{value!r} cannot be written as an #SBATCH value")
    return value


def command(tokens: Sequence[Token]) -> str:
    """Write argv over several lines, each ended by a backslash, broken before options."""
    lines: list[str] = []
    for item in tokens:
        word = token(item)
        breakable = isinstance(item, JobVar) or word.startswith("-") or word in ("bash", "python")
        if lines and (not breakable or len(lines[-1]) + len(word) < WIDTH):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return " \\\n  ".join(lines)
