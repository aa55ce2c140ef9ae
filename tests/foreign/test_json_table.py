"""Tables of results as JSON: columns, lines, and what is refused."""

from pathlib import Path

import pandas as pd
import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.table_file import is_result_table, parse_json, read_table

T = Path("t.json")


def test_rows_have_the_line_on_which_they_begin() -> None:
    text = '\n{"nodes": 1}\n\n{"nodes": 2,\n "x": null}\n'
    assert parse_json(T, text).rows == ((2, ("1", "")), (4, ("2", "")))
    array = '[\n{"nodes": 1},\n{"nodes": 2,\n "x": true}\n]\n'
    assert parse_json(T, array).rows == ((2, ("1", "")), (3, ("2", "true")))


def test_objects_within_objects_are_columns() -> None:
    table = parse_json(T, '{"a": {"b": {"c": 1.5}, " d ": " x "}, "e": [1, 2]}')
    assert table.names == ("a.b.c", "a.d", "e")
    assert table.rows == ((1, ("1.5", "x", "[1, 2]")),)


@pytest.mark.parametrize("rows", [3, 3000])
def test_records_that_pandas_writes_are_one_table(tmp_path: Path, rows: int) -> None:
    cells = [(2**i % 1024, 4, 500.5 + i) for i in range(rows)]
    path = tmp_path / "t.json"
    frame = pd.DataFrame(cells, columns=["nodes", "gpus_per_node", "samples_per_second"])
    frame.to_json(path, orient="records")
    assert is_result_table(path)
    table = read_table(path)
    assert table.names == ("nodes", "gpus_per_node", "samples_per_second")
    assert [row for _, row in table.rows] == [tuple(map(str, row)) for row in cells]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.json: empty"),
        ("[]", "t.json: empty"),
        ('{"a": 1}\n2', "t.json:2: 2 is not an object"),
        ('[{"a": 1}\n"b"]', 't.json:2: "b" is not an object'),
        ('[{"a": 1},\n', "t.json:"),
        ('{"a": 1}\n{"a": 1', "t.json:2: not valid JSON"),
        ('{"a": ' + "[" * 100_000, "t.json: too deeply nested objects"),
        ('{"a": ' + '{"b":' * 100_000, "t.json: too deeply nested objects"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(LogParseError) as caught:
        parse_json(T, text)
    assert caught.value.message.startswith(message)
