"""Apply edits to a script; the rest of the text is unchanged byte for byte."""

from __future__ import annotations

from collections.abc import Iterable

from hpc_train.lint.rule import Edit


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return the text after the edits; skip an edit whose `before` is no longer in the line."""
    edits = tuple(edits)
    lines = text.split("\n")
    # A line may be inserted: apply the last edit first, so that line numbers remain valid.
    for edit in sorted(edits, key=lambda edit: -edit.line):
        if edit.line:
            line = lines[edit.line - 1]
            lines[edit.line - 1] = line.replace(edit.before, edit.after, 1)
    text = "\n".join(lines)
    for edit in edits:
        if edit.line == 0:
            text = text.replace(edit.before, edit.after)
    return text
