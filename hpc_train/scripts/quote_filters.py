"""Filters that quote values in a shell script, each according to its type."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from hpc_train.base.errors import RenderError
from hpc_train.base.slurm_options import DIRECTIVE_VALUE
from hpc_train.plans.plan import FirstOf, JobVar, JobWords, Joined, Setting, Text, Token

WIDTH = 96
# Their first option stays beside them.
_PROGRAMS = ("bash", "sh", "python")


def sh(value: str | int | float) -> str:
    """Quote literal text for any shell; `==` after a name would look like a comparison.

    Each further line begins with two quotes, because a word on its own line could end a
    here-document.

    Raises:
        RenderError: neither text nor a number, such as a missing field of the plan.
    """
    if not isinstance(value, (str, int, float)):
        raise RenderError(f"sh quotes text, not {value!r}")
    quoted = shlex.quote(str(value)).replace("\n", "\n''")
    return f"'{quoted}'" if quoted.startswith("=") else quoted


def token(value: Token) -> str:
    """Write a literal quoted, job variables as quoted expansions.

    Raises:
        RenderError: not an argument of the launch command.
    """
    if isinstance(value, Joined):
        return "".join(token(part) for part in value.parts)
    if isinstance(value, FirstOf):
        return _first(value, "")
    if isinstance(value, JobWords):
        return f'"${{{value.name}[@]}}"'
    if not isinstance(value, (Text, JobVar)):
        raise RenderError(f"token and command write the arguments of plan.launch, not {value!r}")
    return sh(value.text) if isinstance(value, Text) else f'"${value.name}"'


def required(value: Token) -> str:
    """Like `token`, but a variable that the launcher did not set ends the rank with a message."""
    if isinstance(value, FirstOf):
        return _first(value, ":?the launcher did not set it")
    if isinstance(value, JobVar):
        return f'"${{{value.name}:?the launcher did not set it}}"'
    return token(value)


def _first(value: FirstOf, otherwise: str) -> str:
    *others, last = value.names
    expansion = f"${{{last}{otherwise or ':-'}}}"
    for name in reversed(others):
        expansion = f"${{{name}:-{expansion}}}"
    return f'"{expansion}"'


def directive(value: str) -> str:
    """Check a value of an sbatch option, to which the shell's quoting rules do not apply.

    Raises:
        RenderError: a blank, a quote or a line break, which could become another option.
    """
    if not DIRECTIVE_VALUE.fullmatch(value):
        raise RenderError(f"{value!r} cannot be written as an #SBATCH value")
    return value


def quoted_directive(value: str) -> str:
    """Write a value of an #SBATCH line that may contain blanks, as sbatch reads quotes."""
    if DIRECTIVE_VALUE.fullmatch(value):
        return value
    return '"' + comment(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def command(tokens: Sequence[Token], before: str = "") -> str:
    """Write argv over several lines, each ended by a backslash, broken before options and programs.

    An option stays on the line of its value, and `bash` on that of its `-c`. The first line
    begins with the words `before`.
    """
    lines = [before] if before else []
    for words in _unbroken(tokens):
        if lines and len(lines[-1]) + len(words) < WIDTH:
            lines[-1] += f" {words}"
        else:
            lines.append(words)
    return " \\\n  ".join(lines)


def _unbroken(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the words that share a line."""
    words: list[str] = []
    for item in tokens:
        word = token(item)
        first_option = bool(words) and words[-1] in _PROGRAMS
        if words and (word in _PROGRAMS or (word.startswith("-") and not first_option)):
            yield " ".join(words)
            words = []
        words.append(word)
    if words:
        yield " ".join(words)


def comment(text: str) -> str:
    """Keep a comment on one line: a file name may contain a line break."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def note(setting: Setting) -> str:
    """Write the comment of an export: origin of the value, and reason."""
    return comment("  # " + ": ".join(filter(None, (setting.origin, setting.why))))
