"""Contrast of the page's colours, in light and dark, as WCAG 2.2 counts it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpc_train.reports.figures.page_colours import VARIABLES, with_variables
from hpc_train.reports.figures.plot_data import MOST_SERIES
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


def test_series_can_be_seen_and_named_in_their_colours() -> None:
    dark = dict(re.findall(r"--(f-[a-z0-9]+):(#[0-9a-f]{6})", STYLE))
    assert {f"--{name}" for name in dark} == set(VARIABLES.values())
    assert dark["f-paper"] == DARK["paper"]
    series = [name for name in dark if name[2:].isdigit()]
    shown = {name: contrast(dark[name], dark["f-paper"]) for name in (*series, "f-ink", "f-grey")}
    shown |= {colour: contrast(colour, "#fff") for colour in (*COLOURS, "#595959")}
    assert {name: ratio for name, ratio in shown.items() if ratio < 4.5} == {}
    assert with_variables("fill: #0068a6; x: #123456") == "fill: var(--f-0,#0068a6); x: #123456"


# Machado, Oliveira and Fernandes 2009: linear RGB -> what a reader with that deficiency sees.
_SEEN = {
    "usual": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: str, seen: Any) -> Any:
    """Return CIELAB (D65) of a colour as seen through a matrix."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    white = np.array([0.9505, 1.0, 1.089])
    x, y, z = np.cbrt(np.maximum(_XYZ @ np.clip(seen @ linear, 0, 1) / white, 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("seen", _SEEN.values(), ids=list(_SEEN))
def test_colour_blind_readers_can_tell_the_series_apart(seen: Any) -> None:
    dark = dict(re.findall(r"--(f-(?:\d|ink)):(#[0-9a-f]{6})", STYLE))
    for colours in (COLOURS, tuple(dark.values())):
        assert len(colours) == MOST_SERIES
        pairs = itertools.combinations([lab(colour, seen) for colour in colours], 2)
        assert min(float(np.linalg.norm(a - b)) for a, b in pairs) > 9
