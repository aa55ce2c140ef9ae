"""Strict YAML: lines are known, and surprises of YAML 1.1 do not happen."""

from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.errors import SpecError
from hpc_train.base.yamlfile import Document, lookup, read, value_of


def load(text: str) -> Document:
    document = Document("job.yaml", SpecError)
    document.load(text)
    return document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("1:30:00", "1:30:00"),
        ("2026-11-01", "2026-11-01"),
        ("0o17", "0o17"),
        ("007", 7),
        ("1_000", "1_000"),
        ("true", True),
        ("~", None),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-3", -3),
        ("'3'", "3"),
        ("<<", "<<"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    assert value_of(text, "--set x", SpecError) == value


def test_every_key_knows_its_line() -> None:
    document = load("name: a\nresources:\n  nodes: 2\ncommand:\n- x\n- y\n")
    assert document.origins["resources.nodes"] == "job.yaml:3"
    assert document.origins["command.1"] == "job.yaml:6"
    assert lookup(document.data, "command.1") == "y"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "job.yaml: the file is empty"),
        ("a: 1\na: 2\n", "job.yaml:2: the key 'a' is given twice"),
        ("a: [1, 2\n", "job.yaml:2: not valid YAML"),
        ("a:\n\t- b\n", "job.yaml:2: not valid YAML"),
        ("a: !!python/object:os.system x\n", "job.yaml:1: the tag"),
        ("a: &x [*x]\n", "an alias to itself"),
        ('a: "\\0"\n', "job.yaml:1: a NUL character"),
        (f"a: {'9' * 4400}\n", "job.yaml:1: a number of 4400 digits"),
        ("? [a, b]\n: c\n", "job.yaml:1: a key must be a word"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(SpecError) as failure:
        load(text)
    assert message in failure.value.message


@pytest.mark.parametrize("depth", [60, 5000])
def test_nesting_has_an_end(depth: int) -> None:
    with pytest.raises(SpecError, match="nested too deeply"):
        load("a: " + "[" * depth + "]" * depth)


def test_aliases_that_multiply_are_stopped() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(SpecError, match="more than 100000 values"):
        load("\n".join(rows))


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("a: 1")
    with pytest.raises(SpecError, match=r"jbo\.yaml: No such file.*did you mean 'job\.yaml'"):
        read(tmp_path / "jbo.yaml", SpecError)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"a: \xff\xfe")
    with pytest.raises(SpecError, match="not UTF-8 text"):
        read(path, SpecError)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    path.write_bytes(b"#" * (5 * 1024 * 1024))
    with pytest.raises(SpecError, match="larger than 4 MiB"):
        read(path, SpecError)
