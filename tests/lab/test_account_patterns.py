"""A regular expression of accounts becomes patterns of Lua."""

from __future__ import annotations

import pytest

from hpc_train.lab.twins.start_and_stop import lua_patterns


@pytest.mark.parametrize(
    ("regex", "patterns"),
    [
        ("project_[0-9]+", ["^project%_[0-9]+$"]),
        (".+-delta-(gpu|cpu)", ["^.+%-delta%-gpu$", "^.+%-delta%-cpu$"]),
        ("(?:def|rrg)-.+|x", ["^def%-.+$", "^rrg%-.+$", "^x$"]),
        (r"^[a-z]{3}\d{1,2}\.?$", ["^[a-z][a-z][a-z]%d%d?%.?$"]),
        ("(a|b)(c|d)", ["^ac$", "^ad$", "^bc$", "^bd$"]),
        (r"a((b|c)|d)e*", ["^abe*$", "^ace*$", "^ade*$"]),
        (r"[^\w.%]{2,}\w", ["^[^%w_%.%%][^%w_%.%%][^%w_%.%%]*[%w_]$"]),
    ],
)
def test_the_pattern_of_lua(regex: str, patterns: list[str]) -> None:
    assert lua_patterns(regex) == tuple(patterns)


@pytest.mark.parametrize(
    "regex",
    [
        "(ab)+",
        "(a|b)?",
        "(?=a)b",
        r"\bx",
        r"(a)\1",
        "é",
        "[é]",
        "a++",
        "(?i)a",
        r"[\W]",
        *("a{9,99}", "(a|b)" * 7),
    ],
)
def test_what_lua_cannot_express(regex: str) -> None:
    assert lua_patterns(regex) is None
