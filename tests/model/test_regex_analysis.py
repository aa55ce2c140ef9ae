"""What is known of a regular expression without running it: sure text, and nested repeats."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.model.regex_analysis import literal_of, may_explode


@pytest.mark.parametrize(
    ("regex", "literal"),
    [
        (r"step (?P<step>\d+) took (?P<step_time>[\d.]+) ms", " took "),
        (r"^loss: (?P<loss>\S+)$", "loss: "),
        (r"a\.b\[c\] = (?P<loss>.+)", "a.b[c] = "),
        (r"colou?r is it", "r is it"),
        (r"ab+cdef*g", "cde"),
        (r"x{2}yz", "yz"),
        (r"\x41bcd", "bcd"),
        (r"\tabc\d\d", "abc"),
        (r"(?:never|either) taken", " taken"),
        (r"[]abc] word [^]x] and", " word "),
        (r"(?#a comment) text", " text"),
        (r"one|other", ""),
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


@pytest.mark.parametrize(
    "regex",
    [
        r"(a+)+$",
        r"(?:\d+,)*x",
        r"((?:ab*)c){3,}",
        r"(a|aa)+b",
        r"(?:a{1,50}){1,50}",
        r"((a|b)c)*",
        r"(?:xx?)+y",
        r"(x{2,5})*y",
        r"(?:(?:ab)?a)+c",
    ],
)
def test_nested_repeats_may_explode(regex: str) -> None:
    assert may_explode(regex)


@pytest.mark.parametrize(
    "regex",
    [
        r"(\d+) (\d+)",
        r"(?:a+)?b",
        r"(?:abc)+",
        r"[(a+)]+",
        r"\(a+\)+",
        r"(a|b)?",
        r"(a+){2}",
        r"(?:a{3},)+",
        r"(?:ab?){0,3}",
    ],
)
def test_simple_repeats_do_not(regex: str) -> None:
    assert not may_explode(regex)
