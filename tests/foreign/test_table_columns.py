"""The runs, values and errors of a table are those of its rows."""

import csv
import io
from pathlib import Path
from typing import Any

from hypothesis import given, settings, strategies as st

from hpc_train.foreign.runs_from_table import table_study
from hpc_train.foreign.table_file import decoded, parse_csv
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedStudy

PATH = Path("t.csv")
HEAD = ("run", "nodes", "gpus_per_node", "samples_per_second", "launcher", "torch", "job_id")
NUMBER = st.floats(1e-3, 1e6).map(lambda value: f"{value:.9g}") | st.integers(1, 999).map(str)
ROW = st.tuples(
    st.integers(1, 3), NUMBER | st.just(""), st.sampled_from(["srun", "mpirun", "-", " srun "]),
    st.sampled_from(["2.8", "é", "a,b", ""]),
)  # fmt: skip


def text_of(rows: list[Any], *, quoted: bool = False) -> bytes:
    """Return a table of rows, each with a name and a job id of its own."""
    out = io.StringIO()
    writer = csv.writer(
        out, lineterminator="\n", quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    )
    writer.writerow(HEAD)
    for place, (nodes, rate, launcher, torch) in enumerate(rows):
        writer.writerow((f"r{place}", nodes, 4, rate, launcher, torch, place))
    return out.getvalue().encode()


def study(raw: bytes) -> tuple[ExpectedStudy, list[Record]]:
    return table_study([parse_csv(PATH, decoded(raw))])


def simple(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Return what the runs are, row by row."""
    counts: dict[Any, int] = {}
    found = []
    for place, (nodes, _, launcher, torch) in enumerate(rows):
        axes = {} if launcher == "-" else {"launcher": launcher.strip()}
        conditions = {"torch": torch} if torch else {}
        key = repr((nodes, axes, conditions))
        counts[key] = counts.get(key, 0) + 1
        found.append((f"r{place}", nodes, axes, conditions, counts[key]))
    return found


@settings(deadline=None, max_examples=40)
@given(st.lists(ROW, min_size=1, max_size=9))
def test_runs_and_values_are_those_of_the_rows(rows: list[Any]) -> None:
    # A launcher that no two rows share could be a remark.
    rows = [*rows, (1, "2.5", "srun", ""), (1, "2.75", "srun", "")]
    expected, records = study(text_of(rows))
    runs = [
        (run.run_id, run.sizes["nodes"], run.axes, run.conditions, run.repetition)
        for run in expected.runs
    ]
    assert runs == simple(rows)
    rated = [(f"r{place}", float(row[1]), place + 2) for place, row in enumerate(rows) if row[1]]
    assert [(one.run, one.value, one.line) for one in records] == rated


@settings(deadline=None, max_examples=40)
@given(st.lists(ROW, min_size=1, max_size=9), st.data())
def test_quotes_comments_and_line_ends_change_only_the_lines(rows: list[Any], data: Any) -> None:
    plain, records = study(text_of(rows))
    lines = text_of(rows, quoted=True).split(b"\n")
    place = data.draw(st.integers(0, len(lines) - 1))
    lines[place:place] = [b"# a comment", b"", b",,,,,,"]
    other, others = study(data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])).join(lines))
    assert [(one.run_id, one.axes, one.sizes, one.conditions) for one in other.runs] == [
        (one.run_id, one.axes, one.sizes, one.conditions) for one in plain.runs
    ]
    assert [one.value for one in others] == [one.value for one in records]
    wanted = [one.line if one.line - 1 < place else one.line + 3 for one in records]
    assert [one.line for one in others] == wanted
