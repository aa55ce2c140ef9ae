"""JSON lines, or a JSON array of objects -> the columns and rows of a table of results.

Objects within objects become columns `outer.inner`. The columns are those of all rows, in the order
in which they appear. An object of columns, `{"nodes": {"0": 1, "1": 2}}`, is what pandas writes
unless told otherwise; its other forms (`orient`) with names are read as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable, table_of
from hpc_train.imports.exported_headings import names_a_result

# Limit of cells, because each row gets a cell of each column.
_MOST_CELLS = 100_000_000
_DEEPEST = 20
_KEY = re.compile(r'"([^"\\]{1,200})"\s*:')
# The names of columns in the other forms of pandas, which stand before all rows.
_SPLIT = re.compile(r'\A\s*\{\s*"columns"\s*:\s*(\[[^\]]{1,60000}\])')
# Only the first column of many rows stands in the head.
_COLUMN = re.compile(r'\A\s*\{\s*"[^"\\]{1,200}"\s*:\s*\{\s*"0"\s*:\s*[^\s{\[]')
_SCHEMA = re.compile(r'\A\s*\{\s*"schema"\s*:\s*\{\s*"fields"\s*:\s*(\[[^\]]{1,60000}\])')
_ROWS = "write one object for each job: a line each, or in an array"
_BLANK = " \t\r\n"
_Decode = Callable[[str, int], tuple[Any, int]]


def is_json_of_results(head: str) -> bool:
    """Whether the first object has the columns of a table of results; `head` is how it begins.

    An array without rows is a table; reading it names what is missing.
    """
    if head.split(maxsplit=2) in (["[]"], ["[", "]"]):
        return True
    rows = _rows(head)
    try:
        _, first = next(rows)
        names = tuple(_cells(first)) if isinstance(first, dict) else ()
    except StopIteration:
        return False
    except ValueError:
        # It is longer than the head, or reading it names what is wrong.
        if _COLUMN.match(head):
            return True
        names = _named_in_head(head) or tuple(_KEY.findall(head.partition("}")[0]))
    return names_a_result(names, sized=True)


def _named_in_head(head: str) -> tuple[str, ...]:
    """Return the columns of a table that pandas wrote in parts; none for another form."""
    for pattern in (_SPLIT, _SCHEMA):
        if match := pattern.match(head):
            try:
                names = json.loads(match[1])
            except ValueError:
                return ()
            return tuple(str(one.get("name") if isinstance(one, dict) else one) for one in names)
    return ()


def parse_json(path: Path, text: str) -> ResultTable:
    """Read a table.

    Raises:
        LogParseError: it is not valid JSON, a row is not an object or repeats a key, or there are
            too many columns.
    """
    names: dict[str, int] = {}
    rows: list[tuple[int, dict[str, str]]] = []
    try:
        for line, value in _rows(text):
            rows.append((line, _row(f"{path}:{line}", value)))
            for name in rows[-1][1]:
                names.setdefault(name, len(names))
    except json.JSONDecodeError as failure:
        message = f"{path}:{failure.lineno}: not valid JSON: {failure.msg}"
        raise LogParseError(message, _ROWS) from None
    if not rows:
        raise LogParseError(f"{path}: empty", _ROWS)
    if len(names) * len(rows) > _MOST_CELLS:
        raise LogParseError(
            f"{path}: {len(rows)} rows with {len(names)} different keys in all",
            "give all rows the same keys",
        )
    cells = ((at, [row.get(name, "") for name in names]) for at, row in rows)
    return table_of(path, rows[0][0], tuple(names), cells)


def _row(where: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise LogParseError(f"{where}: {json.dumps(value)[:40]} is not an object", _ROWS)
    try:
        return _cells(value)
    except ValueError as wrong:
        raise LogParseError(f"{where}: {wrong}", _ROWS) from None


def _rows(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the value of each row, with the line on which it begins."""
    objects = _objects(text)
    first = next(objects, None)
    second = next(objects, None)
    if first is not None and second is None and isinstance(first[1], dict):
        line, value = first
        if (rows := _rows_of_frame(value)) is not None:
            yield from ((line, row) for row in rows)
            return
    yield from chain(filter(None, (first, second)), objects)


def _rows_of_frame(value: dict[str, Any]) -> list[Any] | None:
    """Return the rows of one object that pandas wrote, by its `orient`; None for any other.

    `columns`: {name: {number: cell}}; `index`: {number: row}; `split`: {"columns", "data"};
    `table`: {"schema", "data"}.
    """
    data, names, schema = value.get("data"), value.get("columns"), value.get("schema")
    if isinstance(data, list) and isinstance(names, list):
        return [_split_row(names, cells) for cells in data]
    if isinstance(data, list) and isinstance(schema, dict):
        return [_without(schema.get("primaryKey"), row) for row in data]
    return _rows_by_number(value)


def _rows_by_number(value: dict[str, Any]) -> list[Any] | None:
    """Return the rows of an object of columns or of rows, each with the same keys."""
    parts = list(value.values())
    if not parts or not all(isinstance(part, dict) for part in parts):
        return None
    if not all(part.keys() == parts[0].keys() for part in parts):
        return None
    if all(map(str.isdecimal, value)):
        return parts
    if all(map(str.isdecimal, parts[0])):
        return [{name: column[number] for name, column in value.items()} for number in parts[0]]
    return None


def _split_row(names: list[Any], cells: Any) -> Any:
    """Return a row of `split`; as it is, to be refused, if it has not a cell for each column."""
    if (
        not isinstance(cells, list)
        or len(cells) != len(names)
        or len(set(map(str, names))) < len(names)
    ):
        return cells
    return dict(zip(map(str, names), cells, strict=True))


def _without(keys: Any, row: Any) -> Any:
    """Return a row of `table` without the numbers of the rows."""
    if not isinstance(row, dict) or keys != ["index"]:
        return row
    return {name: cell for name, cell in row.items() if name != "index"}


def _objects(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the values of lines or of an array, with the line on which they begin."""
    decode = json.JSONDecoder(object_pairs_hook=_unique).raw_decode
    position = _next(text, 0)
    in_array = text[position : position + 1] == "["
    line, counted = 1, 0
    position = _next(text, position + 1) if in_array else position
    while position < len(text) and not (in_array and text[position] == "]"):
        line, counted = line + text.count("\n", counted, position), position
        value, position = _decoded(decode, text, position)
        yield line, value
        position = _next(text, position)
        if in_array and text[position : position + 1] not in (",", "]"):
            raise json.JSONDecodeError("Expecting ',' or ']'", text, position)
        if in_array and text[position] == ",":
            position = _next(text, position + 1)
    if in_array and position >= len(text):
        raise json.JSONDecodeError("the array has no end", text, len(text))


def _decoded(decode: _Decode, text: str, position: int) -> tuple[Any, int]:
    try:
        return decode(text, position)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as failure:
        raise json.JSONDecodeError(str(failure), text, position) from None


def _next(text: str, position: int) -> int:
    """Return the position of the next character that is not blank."""
    while text[position : position + 1] in tuple(_BLANK):
        position += 1
    return position


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in an object")
    return found


def _cells(row: dict[str, Any], before: str = "", depth: int = 0) -> dict[str, str]:
    """Return the cells of a row by the names of their columns.

    Raises:
        ValueError: there are too many objects within one another.
    """
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} objects within one another")
    cells: dict[str, str] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            cells |= _cells(value, f"{before}{name}.", depth + 1)
        else:
            cells[before + name.strip()] = _cell(value)
    return cells


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value)
