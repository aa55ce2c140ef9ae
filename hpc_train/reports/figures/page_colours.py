"""Colours of a figure -> CSS variables, so that a page can show it in the dark."""

from __future__ import annotations

import re

from hpc_train.reports.figures.series_styles import COLOURS

# As matplotlib writes them; the page's style defines the variables for dark screens.
VARIABLES = {
    **{colour: f"--f-{i}" for i, colour in enumerate(COLOURS)},
    "#000000": "--f-ink", "#ffffff": "--f-paper", "#595959": "--f-grey", "#e5e5e5": "--f-grid",
    "#e6e6e6": "--f-grid", "#cccccc": "--f-ghost", "#ededed": "--f-beyond",
}  # fmt: skip
INK = "fill:var(--f-ink,#000)"
_COLOUR = re.compile(r"#[0-9a-f]{6}")


def with_variables(style: str) -> str:
    """Return a style whose known colours are variables, with themselves as defaults."""
    return _COLOUR.sub(lambda found: _variable(found[0]), style)


def _variable(colour: str) -> str:
    name = VARIABLES.get(colour)
    return f"var({name},{colour})" if name else colour
