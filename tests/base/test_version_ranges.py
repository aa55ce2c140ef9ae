"""Versions and ranges of them."""

import pytest

from hpc_train.base.values import NodeBounds, Version, parts, within


@pytest.mark.parametrize(
    ("version", "bounds", "inside"),
    [
        ("2.21", ">=2.21", True), ("2.21.5", "2.21", True), ("2.21.5", "<=2.21", True),
        ("2.21.5", ">2.21", False), ("2.21", ">=2.21.3", False), ("2.9", "<2.21", True),
        ("3", ">2.21", True), ("2.25", ">=2.21, <2.30", True), ("2.30", ">=2.21, <2.30", False),
        ("2.28", "<2.28.0", False), ("2", ">=2.0", True),
    ],
)  # fmt: skip
def test_within(version: str, bounds: str, inside: bool) -> None:
    assert within(parts(version), bounds) == inside


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("2", (2,)), ("2.9.1+cu130", (2, 9, 1)), ("5.0.0rc2", (5, 0, 0)), ("2.9.dev1", (2, 9))],
)
def test_what_a_build_adds_is_no_number(text: str, numbers: tuple[int, ...]) -> None:
    assert parts(Version.parse(text)) == numbers


@pytest.mark.parametrize("raw", ["1.5", ">1.0", ">=2,<16.5"])
def test_nodes_are_counted_in_whole_numbers(raw: str) -> None:
    with pytest.raises(ValueError, match="is not a range of node counts"):
        NodeBounds.parse(raw)


@pytest.mark.parametrize("raw", [True, None, [1], "", ">", "2..1", ">=2.21,"])
def test_nonsense_is_no_range(raw: object) -> None:
    for kind in (NodeBounds, Version):
        with pytest.raises(ValueError, match="is no"):
            kind.parse(raw)
