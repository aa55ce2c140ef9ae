"""Annotations of the types are objects, which msgspec need not compile at each start."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpc_train.model
from hpc_train.model.regex_parts import literal_of

MODULES = sorted(path.stem for path in Path(hpc_train.model.__path__[0]).glob("[!_]*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_no_annotation_is_a_string(name: str) -> None:
    module = importlib.import_module(f"hpc_train.model.{name}")
    types = [
        one
        for one in vars(module).values()
        if isinstance(one, type)
        and issubclass(one, msgspec.Struct)
        and one.__module__ == module.__name__
    ]
    strings = {
        f"{one.__name__}.{field}"
        for one in types
        for field, kind in vars(one).get("__annotations__", {}).items()
        if isinstance(kind, str)
    }
    assert strings == set()


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
