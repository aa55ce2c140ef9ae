"""A table with any numbers: a report without a warning of NumPy, or an error with file and line."""

import tempfile
import warnings
from pathlib import Path

from hypothesis import example, given, settings, strategies as st

from hpc_train.base.errors import HpcTrainError
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.write_report import render_report

COLUMNS = ("samples_per_second", "step_time", "global_batch_size", "memory", "accuracy", "loss")
HEAD = f"nodes,gpus_per_node,gpu,repetition,{','.join(COLUMNS)}\n"
extremes = st.sampled_from(
    ["", "0", "5e-324", "1e-100", "9e-101", "1e100", "1.7976931348623157e308", "-1", "nan", "inf",
     "1e309", "0,5", "500", "500.0", "1_000"]
)  # fmt: skip
positive = st.floats(min_value=5e-324, allow_infinity=False).map(repr)
usual = st.floats(1e-3, 1e6).map(repr)
row = st.tuples(st.integers(1, 3), *[extremes | positive | usual for _ in COLUMNS])
sound = st.tuples(st.integers(1, 3), *[positive | usual] * 4, st.just("0.5"), usual)
SAME = (1, *["1e100"] * 4, "0.5", "1e308")


def built(rows: list[tuple[int | str, ...]]) -> str:
    """Return the report of a table, or the error."""
    lines = [
        f"{nodes},4,A100,{number},{','.join(map(str, cells))}"
        for number, (nodes, *cells) in enumerate(rows)
    ]
    # A cell with a decimal comma makes a row too long: quoted, it is one cell.
    text = HEAD + "\n".join(lines).replace("0,5", '"0,5"') + "\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(text)
        try:
            inputs = report_inputs([str(path)], Search(root=path / "none"))
            return render_report(build_report(inputs), "json")
        except HpcTrainError as error:
            return error.message


@settings(deadline=None, max_examples=60)
@given(st.lists(row, min_size=1, max_size=5) | st.lists(sound, min_size=1, max_size=6))
@example([SAME, (2, *SAME[1:]), (2, *SAME[1:])])
@example([(1, "5e-324", "5e-324", "5e-324", "5e-324", "0.5", "1"), SAME])
def test_any_numbers_give_a_report_or_a_place(rows: list[tuple[int | str, ...]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = built(rows)
    assert found.startswith("{") or "t.csv" in found
