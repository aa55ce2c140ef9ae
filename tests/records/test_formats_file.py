"""The file of formats: each is compiled, and a mistake is named with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.data_folders import data_file
from hpc_train.records.parsers.formats import FormatError, compiled, read_formats

FORMAT = """\
schema: 1
formats:
  ours:
    title: our trainer
    literals: ['it/ms=']
    sample: 'it 20 it/ms=131.5'
    lines:
      - pattern: 'it (?P<step>\\d{1,9}) it/ms=(?P<step_time>{N})'
        values:
          step_time: {scope: per_rank, scale: 1e-3}
"""


def test_each_format_of_the_package_is_compiled() -> None:
    file = read_formats(data_file("formats.yaml"))
    assert len([compiled(file, name) for name in file.value.formats]) >= 15


@pytest.mark.parametrize(
    ("right", "wrong", "text"),
    [
        ("{scope: per_rank,", "{scop: per_rank,", ":10: "),
        ("per_rank", "per_node", ":10: "),
        ("(?P<step>", "(?P<step>(", ":8: formats.ours.lines.0.pattern: no regular expression"),
        ("step_time: {", "time: {", ":10: formats.ours.lines.0.values.time: the pattern has no"),
        ("step_time", "step_tine", ":10: formats.ours.lines.0.values.step_tine: no metric"),
        ("['it/ms=']", "[]", ":5: "),
    ],
)
def test_a_mistake_is_named_with_its_line(
    right: str, wrong: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "formats.yaml"
    path.write_text(FORMAT.replace(right, wrong), "utf-8")
    with pytest.raises(FormatError) as found:
        compiled(read_formats(path), "ours")
    assert str(found.value).startswith(f"{path}{text}")
