"""Text -> LaTeX that prints it unchanged, and the width of that."""

from __future__ import annotations

import re

from hpc_train.reports.value_format import one_line

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "≥": r"$\geq$", "≤": r"$\leq$",
    "→": r"$\rightarrow$", "←": r"$\leftarrow$", "≈": r"$\approx$", "≠": r"$\neq$",
    "∞": r"$\infty$", "\u2212": r"$-$", "\u03bc": r"\textmu{}", "\u00b5": r"\textmu{}",
}  # fmt: skip
# Beyond ASCII, T1 fonts have these: Latin letters, and signs of typography.
_IN_FONTS = r"\u00a1-\u00ac\u00ae-\u017e\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2030\u20ac"
_SPECIAL = re.compile("[" + re.escape("".join(_ESCAPES)) + rf"]|--|[^\x20-\x7e{_IN_FONTS}]")
# Of the font ecrm0800 [pt], as TeX measures them.
_SIZES = {
    2.36: "!',.:;[]il|", 2.6: "fj", 2.83: "- ", 3.06: "I", 3.31: "()trs", 3.78: "cez", 4.02: "?",
    4.25: '"$*/0123456789\\`ago{}', 4.49: "kqvxyJ", 4.72: "Sbdhnpu", 5.2: "Z^~", 5.31: "L",
    5.54: "F", 5.78: "EP", 6.02: "B", 6.25: "CTwR", 6.49: "AHNUVXYD", 6.67: "K&+<=>@OQ_G",
    7.08: "#%m", 7.78: "M", 8.73: "W", 11.33: "…",
}  # fmt: skip
_WIDTHS = {letter: size for size, letters in _SIZES.items() for letter in letters}
_OTHER = 8.5


def escaped(text: str) -> str:
    """Return text that LaTeX prints unchanged, including two hyphens.

    A character that the fonts of pdfLaTeX lack, such as a Chinese one, is written as `U+8282`.
    """
    return _SPECIAL.sub(_replaced, one_line(text))


def _replaced(found: re.Match[str]) -> str:
    text = found[0]
    return _ESCAPES.get(text) or ("{-}{-}" if text == "--" else _code_point(text))


def _code_point(letter: str) -> str:
    return f"U+{ord(letter):04X}"


def printed_width(text: str) -> float:
    r"""Return about the width of a text in points, printed in \footnotesize of 8 pt."""
    return sum(_width(letter) for letter in text)


def _width(letter: str) -> float:
    known = _WIDTHS.get(letter)
    if known is None and _SPECIAL.match(letter) and letter not in _ESCAPES:
        return printed_width(_code_point(letter))
    return _OTHER if known is None else known
