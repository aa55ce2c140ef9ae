"""Factors, counts and sizes against those that nccl-tests documents and prints."""

import pytest

from hpc_train.jobs.collectives import (
    COLLECTIVES,
    Message,
    algorithm_bandwidth,
    collective_name,
    message_of,
    message_sizes,
    parse_size,
)


@pytest.mark.parametrize(
    ("name", "factors"),
    [
        ("allreduce", (1, 1.5, 1.75)), ("allgather", (1 / 2, 3 / 4, 7 / 8)),
        ("reduce_scatter", (1 / 2, 3 / 4, 7 / 8)), ("alltoall", (1 / 2, 3 / 4, 7 / 8)),
        ("broadcast", (1, 1, 1)), ("sendrecv", (1, 1, 1)),
    ],
)  # fmt: skip
def test_bus_factor_is_that_of_the_definition(name: str, factors: tuple[float, ...]) -> None:
    found = [COLLECTIVES[name].bus_factor(ranks) for ranks in (2, 4, 8)]
    assert found == pytest.approx(factors)


def test_a_row_of_nccl_tests_is_reproduced() -> None:
    # all_reduce_perf on eight H100: `704643072 ... 2688.9  262.06  458.60`.
    algorithm = algorithm_bandwidth(704_643_072, 2688.9e-6)
    assert algorithm == pytest.approx(262.06, abs=0.01)
    assert algorithm * COLLECTIVES["allreduce"].bus_factor(8) == pytest.approx(458.60, abs=0.01)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("allreduce", "allreduce"), ("all_reduce", "allreduce"), ("All-Reduce", "allreduce"),
        ("all_gather", "allgather"), ("reducescatter", "reduce_scatter"),
        ("reduce_scatter", "reduce_scatter"), ("all_to_all", "alltoall"), ("bcast", "broadcast"),
        ("p2p", "sendrecv"), ("train", None), ("", None),
    ],
)  # fmt: skip
def test_names_as_people_type_them(typed: str, name: str | None) -> None:
    assert collective_name(typed) == name


def test_whole_arrays_have_the_size_that_was_asked() -> None:
    for name in ("allreduce", "broadcast", "sendrecv"):
        assert message_of(COLLECTIVES[name], 4096, "double", 3) == Message(512, 512, 512)
        assert message_of(COLLECTIVES[name], 3, "float", 3).elements == 0


def test_parts_of_ranks_are_rounded_down_to_16_bytes() -> None:
    # 4096 B of float on 3 ranks: 341 elements each, 340 of them in blocks of four.
    assert message_of(COLLECTIVES["allgather"], 4096, "float", 3) == Message(340, 1020, 340)
    assert message_of(COLLECTIVES["reduce_scatter"], 4096, "float", 3) == Message(1020, 340, 340)
    assert message_of(COLLECTIVES["alltoall"], 4096, "float", 3) == Message(1020, 1020, 340)
    assert message_of(COLLECTIVES["allgather"], 64, "int8", 3) == Message(16, 48, 16)
    assert message_of(COLLECTIVES["allgather"], 64, "float", 8).elements == 0


@pytest.mark.parametrize(
    ("text", "size"),
    [("8", 8), ("64K", 2**16), ("64kb", 2**16), ("1.5G", 3 * 2**29), ("2MiB", 2**21), ("9B", 9)],
)
def test_sizes_are_in_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "K", "0", "-8", "8T", "nan", "inf", "0.1", "8 8", "1e999"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a message size; examples: 8, 64K"):
        parse_size(text)


def test_sizes_go_from_the_smallest_to_the_largest() -> None:
    assert list(message_sizes(8, 128, 2)) == [8, 16, 32, 64, 128]
    assert list(message_sizes(8, 100, 4)) == [8, 32]
    assert list(message_sizes(8, 8, 2)) == [8]
    assert list(message_sizes(8, 100, 1)) == [8]
    assert list(message_sizes(9, 8, 2)) == []
