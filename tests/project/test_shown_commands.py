"""How what a command prints is compared with a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.shown_commands import Shown, difference, type_page

SAME = [
    ("a\nb", "a\nb\n"),
    ("…", "a\nb\n"),
    ("…", ""),
    ("a …\nb", "a 1\nb\n"),
    ("…\nb", "a\nb\n"),
    ("a\n…", "a\nb\nc\n"),
    ("…\nb\n…\nb\n…", "a\nb\nb\n"),
    ("a\n…\na", "a\na\n"),
]
OTHER = [
    ("a", "a\nb\n"),
    ("a\nb", "a\n"),
    ("b\n…", "a\nb\n"),
    ("…\na", "a\nb\n"),
    ("a\n…\na", "a\n"),
    ("…\nb\n…\nb\n…", "b\na\n"),
    ("a …", "b 1\n"),
    ("…\na\nb\n…", "a\nx\nb\n"),
]


@pytest.mark.parametrize(("output", "text"), SAME)
def test_the_same(output: str, text: str) -> None:
    assert difference(output.splitlines(), text) == ""


@pytest.mark.parametrize(("output", "text"), OTHER)
def test_a_difference_has_what_is_shown_and_what_is_printed(output: str, text: str) -> None:
    found = difference(output.splitlines(), text)
    assert found
    assert {line[0] for line in found.splitlines()} <= {"-", "+"}


@pytest.mark.parametrize(
    ("line", "output", "wrong"),
    [
        ("echo a", ("a",), False),
        ("echo a", (), True),
        ("true", (), False),
        ("false", (), True),
        ("echo a; false", ("a",), False),
        ("echo Traceback", ("…",), True),
    ],
)
def test_a_command(line: str, output: tuple[str, ...], wrong: bool, tmp_path: Path) -> None:
    (typed,) = type_page([Shown(line, output)], tmp_path, {"PATH": "/usr/bin:/bin"})
    assert bool(typed.difference) == wrong
