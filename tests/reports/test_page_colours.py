"""Contrast of the page's colours, in light and dark, as WCAG 2.2 counts it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpc_train.reports.figures.page_colours import VARIABLES, with_variables
from hpc_train.reports.figures.series_styles import COLOURS
from hpc_train.reports.formats.page import render

STYLE = (Path(render.__file__).parent / "page.css").read_text(encoding="utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--([a-z-]+):(#[0-9a-f]{3,6})", block))
    for block in re.findall(r":root\{(.*?)\}", STYLE, re.DOTALL)[:2]
)


def brightness(colour: str) -> float:
    """Return the relative luminance (WCAG 2.2)."""
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read(colours: dict[str, str]) -> None:
    assert contrast("#000", "#fff") == pytest.approx(21)
    pairs = [(ink, paper) for ink in ("ink", "soft", "link", "bad", "good")
             for paper in ("paper", "panel")]  # fmt: skip
    pairs += [("ink", "warn-paper"), ("warn", "warn-paper")]
    weak = {p: contrast(colours[p[0]], colours[p[1]]) for p in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}


def test_series_can_be_seen_and_named_in_their_colours() -> None:
    dark = dict(re.findall(r"--(f-[a-z0-9]+):(#[0-9a-f]{6})", STYLE))
    assert {f"--{name}" for name in dark} == set(VARIABLES.values())
    assert dark["f-paper"] == DARK["paper"]
    series = [f"f-{i}" for i in range(len(COLOURS) - 1)]
    shown = {name: contrast(dark[name], dark["f-paper"]) for name in (*series, "f-ink", "f-grey")}
    shown |= {colour: contrast(colour, "#fff") for colour in (*COLOURS, "#595959")}
    assert {name: ratio for name, ratio in shown.items() if ratio < 4.5} == {}
    assert with_variables("fill: #0068a6; x: #123456") == "fill: var(--f-0,#0068a6); x: #123456"
