"""The check of results: exact in each type, and it finds each element that is wrong."""

import pytest

pytest.importorskip("torch")

import torch

from hpc_train.jobs.collectives import COLLECTIVES, DTYPES
from hpc_train.trainer.collectives import TENSOR_TYPES, count_wrong, fill

PART = 24
ROOT = 1


def sent(name: str, ranks: int, dtype: str) -> list[torch.Tensor]:
    """Return what each rank sends."""
    whole = name in ("reduce_scatter", "alltoall")
    arrays = []
    for rank in range(ranks):
        array = torch.zeros(PART * ranks if whole else PART, dtype=TENSOR_TYPES[dtype])
        fill(array, rank, ranks, reduces=COLLECTIVES[name].reduces)
        arrays.append(array)
    return arrays


def received(name: str, arrays: list[torch.Tensor], rank: int) -> torch.Tensor:
    """Return what a rank must receive, by the definition of each collective."""
    ranks = len(arrays)
    own = slice(rank * PART, (rank + 1) * PART)
    if name == "allreduce":
        return total(arrays)
    if name == "reduce_scatter":
        return total([array[own] for array in arrays])
    if name == "allgather":
        return torch.cat(arrays)
    if name == "alltoall":
        return torch.cat([array[own] for array in arrays])
    return arrays[ROOT if name == "broadcast" else (rank - 1) % ranks].clone()


def total(arrays: list[torch.Tensor]) -> torch.Tensor:
    """Return the sum in the type of the arrays, one after the other."""
    result = arrays[0].clone()
    for array in arrays[1:]:
        result += array
    return result


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ranks", [2, 300])
def test_right_results_have_no_wrong_element(name: str, dtype: str, ranks: int) -> None:
    arrays = sent(name, ranks, dtype)
    for rank in {0, 1, ranks - 1}:
        result = received(name, arrays, rank)
        assert count_wrong(COLLECTIVES[name], result, rank, ranks, ROOT) == 0


@pytest.mark.parametrize("name", COLLECTIVES)
def test_each_wrong_element_is_counted(name: str) -> None:
    result = received(name, sent(name, 4, "float"), 2)
    result[3] += 1
    result[-1] = 0
    assert count_wrong(COLLECTIVES[name], result, 2, 4, ROOT) == 2


def test_large_arrays_are_checked_to_their_end() -> None:
    array = torch.zeros(1 << 20 | 5, dtype=torch.uint8)
    fill(array, 1, 2, reduces=False)
    assert int((array == 0).sum()) == 0
    array[-1] = 0
    assert count_wrong(COLLECTIVES["sendrecv"], array, 0, 2, 0) == 1
