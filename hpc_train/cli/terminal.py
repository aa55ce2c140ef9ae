"""The width of a report on the terminal."""

from __future__ import annotations

# Of a report if stdout is no terminal and $COLUMNS is not set; narrower is not readable.
WIDTH, LEAST = 100, 40


def columns() -> int:
    """Return the width of a report: $COLUMNS, else that of the terminal, else 100."""
    # `hpctrain --help` does not need it.
    import shutil

    return max(LEAST, shutil.get_terminal_size((WIDTH, 24)).columns)
