"""Sizes of runs: as planned or stated, else from the log; series of logs without a size."""

import pytest

from hpc_train.base.errors import ReportError
from hpc_train.jobs.study import Scaling
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.split_series import regimes
from tests.scaling.studies import expected, foreign, rate, study


def derived(batches: dict[int, float | None], declared: Scaling | None = None) -> str:
    runs = [expected(f"n{nodes}", nodes=nodes) for nodes in batches]
    records = [r for nodes, batch in batches.items() for r in rate(f"n{nodes}", 1, batch)]
    return set(regimes(run_frame(study(runs), records), declared).values()).pop()


@pytest.mark.parametrize(
    ("batches", "regime"),
    [
        ({1: 64, 2: 64, 4: 64}, "strong"),
        ({1: 64, 2: 128, 4: 256}, "weak"),
        ({1: 64, 2: 128, 4: 128}, "mixed"),
        ({1: None, 2: None}, "unknown"),
        ({1: 64}, "unknown"),
    ],
)
def test_the_regime_follows_from_the_batches(batches: dict[int, float | None], regime: str) -> None:
    assert derived(batches) == regime


@pytest.mark.parametrize("batches", [{1: 64, 2: 128}, {1: 64, 2: 96, 4: 64}])
def test_a_declaration_that_the_data_contradict_is_refused(batches: dict[int, float]) -> None:
    with pytest.raises(ReportError, match=r"is 64 in n1 and (128|96) in n2"):
        derived(dict(batches), "strong")


def test_a_declaration_without_data_stands() -> None:
    assert derived({1: None, 2: None}, "weak") == "unknown"


def test_a_run_without_ranks_leaves_those_of_the_others() -> None:
    # Two and four GPUs on each node: the batch per rank is the same, the batch per node is not.
    runs = [expected("a", nodes=1, gpus=2), expected("b", nodes=2, gpus=4), foreign("c")]
    records = [*rate("a", 1, 64), *rate("b", 1, 256), *rate("c", 1)]
    frame = run_frame(study(runs), records)
    assert frame["ranks"].isna().tolist() == [False, False, True]
    assert set(regimes(frame.assign(series="all")).values()) == {"weak"}
