"""What is known of a regular expression without running it: sure text, and what a search costs."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.model.log_selection import MOST_TOUCHING
from hpc_train.model.regex_analysis import literal_of, may_explode, touching


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


# What `OwnPattern` looks at where the number is the highest that is allowed.
_SEEN = 384
_UNITS = ("1", ",", "a", " ", "a1", ", ", "1, ", "a ")


@pytest.mark.parametrize(
    ("regex", "number"),
    [
        (r"took \d+", 1),
        (r"took (\d+) s", 1),
        (r"^\d+\d+\d+x", 3),
        (r"\A\d+\d+\d+x", 3),
        (r"\d+\d+\d+x", 4),
        (r"took \d+\d+\d+x", 3),
        (r"took \d+(?:\d+)\d{2,}x", 3),
        (r"took \d+\d\d+x", 2),
        (r"took \d+ ?\d+x", 2),
        (r"took \d+(?:, )?\d+x", 2),
        (r"took \d+, \d+x", 1),
        (r"took \d+[a-z]+\d+x", 1),
        (r"took .*,.*,.*x", 3),
        (r"took .*, .*, .*x", 1),
        (r"took (?:\d+|a\d*)\d+x", 2),
        (r"took (?:ab)+(?:ab)+x", 2),
        (r"took (?=\d+)\d+x", 1),
        (r"(?i)took [a-z]+[A-Z]+x", 2),
        (r"took (\d+)\1\d+x", 2),
        (r"took \d+\b.*x", 2),
        (r"aaaa[a-z]+[a-z]+x", 3),
        (r"step (\d+).*loss ([\d.]+)", 2),
    ],
)
def test_repeats_that_touch(regex: str, number: int) -> None:
    assert len(touching(regex)) == number


def test_what_touches_is_named() -> None:
    assert touching(r"\d+[\d.]*(?:1,)+x") == ("a search", r"\d", r"[\d.]", "(...)")


@pytest.mark.parametrize(
    "regex",
    [
        r"step (\d+).*loss ([\d.]+)",
        r"epoch (\d+).*step (\d+).*loss ([\d.]+).*lr ([\d.e-]+).*tokens/s ([\d.]+)",
        r"loss.*?([\d.]+).*lr ([\d.]+)",
        r"(\d+)/\d+ .* took ([\d.]+) s",
        r"^\[(.*?)\]\s+(\w+)\s*=\s*([\d.]+)\s*ms$",
        r"\s*(\w+)\s*:\s*([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*it/s",
        r"(\d+), ([\d.]+), ([\d.]+), took",
        r".*step=(\d+).*time=([\d.]+).*",
        r"\| (\d+) \| +([\d.]+) \| +([\d.]+) \| took",
    ],
)
def test_plain_patterns_are_few(regex: str) -> None:
    assert len(touching(regex)) <= MOST_TOUCHING


_VALUES = (r"(\d+)", r"([\d.]+)", r"(\S+)", r"\s*([\d.e+-]+)", r" +(\w+)")
_BETWEEN = st.sampled_from((".*", ".*?", r"\s+", " ", ", ", r"\s*\|\s*", r"\D*"))
_FIELD = st.tuples(
    st.sampled_from(("step ", "loss=", "took: ", "tok/s ")), st.sampled_from(_VALUES)
)


@given(st.lists(st.tuples(_FIELD, _BETWEEN), min_size=1, max_size=6))
def test_named_fields_are_few(fields: list[tuple[tuple[str, str], str]]) -> None:
    assert len(touching("".join(a + b + between for (a, b), between in fields))) <= MOST_TOUCHING


_PIECES = (
    r"\d+",
    r"\d*",
    r"[\d,]+",
    r"\w+",
    ".*",
    ".*?",
    r"\s*",
    ",",
    "1",
    r"(?:\d+)?",
    r"(?:1,)+",
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=6), st.sampled_from(("", "a", "^")))
def test_what_is_allowed_is_quick(pieces: list[str], start: str) -> None:
    regex = f"{start}{''.join(pieces)}\x01"
    number = len(touching(regex))
    if number > MOST_TOUCHING:
        return
    search = re.compile(regex).search
    for unit in _UNITS:
        begun = time.process_time()
        search("a" + (unit * _SEEN)[:_SEEN])
        # 0.1 s on a machine of 2020; of the fourth power, it is 10 s.
        assert time.process_time() - begun < 3
