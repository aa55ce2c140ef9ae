"""Apply edits to a script; what no edit touches stays byte for byte."""

from __future__ import annotations

from collections.abc import Iterable

from hpc_train.lint.rule import Edit


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return the text after the edits; an edit whose `before` is not there any more is left out."""
    edits = tuple(edits)
    lines = text.split("\n")
    # A whole line may be inserted: from the last line up, so that the numbers stay right.
    for edit in sorted(edits, key=lambda edit: -edit.line):
        if edit.line:
            line = lines[edit.line - 1]
            lines[edit.line - 1] = line.replace(edit.before, edit.after, 1)
    text = "\n".join(lines)
    for edit in edits:
        if edit.line == 0:
            text = text.replace(edit.before, edit.after)
    return text
