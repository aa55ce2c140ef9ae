"""The longest text that every match of a regular expression contains."""

import re

import pytest
from hypothesis import given, strategies as st

from hpc_train.base.regex import literal_of


@pytest.mark.parametrize(
    ("regex", "literal"),
    [
        (r"step (?P<step>\d+) took (?P<step_time>[\d.]+) ms", " took "),
        (r"^loss: (?P<loss>\S+)$", "loss: "),
        (r"a\.b\[c\] = (?P<loss>.+)", "a.b[c] = "),
        (r"colou?r is it", "r is it"),
        (r"ab+cdef*g", "cde"),
        (r"x{2}yz", "xxyz"),
        (r"\x41bcd", "Abcd"),
        (r"\nabc\d\d", "abc"),
        (r"(?:never|either) taken", " taken"),
        (r"[]abc] word [^]x] and", " word "),
        (r"(?#a comment) text", " text"),
        (r"one|other", "o"),
        (r"(?i)text", ""),
        (r"(?P<loss>\d+)", ""),
        (r"(?=ahead)back", "back"),
    ],
)
def test_the_longest_text_of_every_match(regex: str, literal: str) -> None:
    re.compile(regex)
    assert literal_of(regex) == literal


@given(st.from_regex(r"[ab](c?|\.)*x{1,3}[^\W]+(y|z)? end ?", fullmatch=True))
def test_a_match_holds_the_text(text: str) -> None:
    assert literal_of(r"[ab](c?|\.)*x{1,3}[^\W]+(y|z)? end ?") == " end"
    assert " end" in text
