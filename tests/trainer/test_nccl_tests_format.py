"""The table is that of nccl-tests: wrong results are in it, and its numbers fit their widths."""

import pytest

pytest.importorskip("torch")

from hpc_train.jobs.collectives import COLLECTIVES, message_of
from hpc_train.trainer.collectives import NcclTestsTable, Placement, fitted


def table(name: str, ranks: int = 8) -> NcclTestsTable:
    return NcclTestsTable(collective=COLLECTIVES[name], dtype="float", root=3, ranks=ranks)


def test_a_wrong_result_is_in_row_and_foot() -> None:
    made = table("broadcast")
    message = message_of(made.collective, 1024, "float", 8)
    row = made.row(message, [Placement(1e-3, 17), Placement(1e-3, None)])
    assert row.split()[4] == "3"
    assert (row.split()[8], row.split()[12]) == ("17", "N/A")
    assert next(made.foot(1, 0.5)) == "# Out of bounds values : 1 FAILED"


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (0.0, 6, "  0.00"),
        (999.994, 6, "999.99"),
        (4321.5, 6, "4321.5"),
        (654321.2, 6, "654321"),
        (99.999, 7, " 100.00"),
        (12345.67, 7, "12345.7"),
        (1234567.8, 7, "1234568"),
        (123456789.0, 7, "1.2e+08"),
    ],
)
def test_numbers_fit_into_their_column(value: float, width: int, text: str) -> None:
    assert fitted(value, width) == text
