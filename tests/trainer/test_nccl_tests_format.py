"""The table is that of nccl-tests: its widths, and our parser reads the same numbers from it."""

from __future__ import annotations

import pytest
import torch

from hpc_train.jobs.collectives import COLLECTIVES, message_of
from hpc_train.trainer.collectives import HEAD, NcclTestsTable, Placement, device_line, fitted
from hpc_train.trainer.process_group import RankGroup
from tests.logs.parse_text import parse

CPU = torch.device("cpu")


def table(name: str, ranks: int = 8) -> NcclTestsTable:
    return NcclTestsTable(collective=COLLECTIVES[name], dtype="float", root=3, ranks=ranks)


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("ranks", [2, 7])
def test_our_parser_reads_what_was_written(name: str, ranks: int) -> None:
    made = table(name, ranks)
    message = message_of(made.collective, 5_000_000, "float", ranks)
    times = (0.0123456, 0.000321)
    devices = [
        device_line(RankGroup(rank=rank, world_size=ranks, device=CPU, backend="gloo", launcher=""))
        for rank in range(ranks)
    ]
    row = made.row(message, [Placement(seconds, 0) for seconds in times])
    lines = [*devices, *HEAD, row, *made.foot(0, 1.5)]
    hits = [hit for _, hit, _ in parse("\n".join(lines).encode() + b"\n")]
    found = {(hit.metric, hit.variant, hit.message_size): hit.value for hit in hits}
    size = made.bytes_of(message)
    due: dict[tuple[str, str, int | None], object]
    due = {("world_size", "", None): ranks, ("wrong_values", "", None): 0}
    due[("busbw", "average", None)] = 1.5
    for variant, seconds in zip(("out_of_place", "in_place"), times, strict=True):
        algorithm, bus = made.bandwidth(message, seconds)
        due[("latency", variant, size)] = pytest.approx(seconds * 1e6, abs=0.05)
        due[("algbw", variant, size)] = pytest.approx(algorithm, abs=0.005)
        due[("busbw", variant, size)] = pytest.approx(bus, abs=0.005)
        assert algorithm == pytest.approx(size / seconds / 1e9)
    assert found == due


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
