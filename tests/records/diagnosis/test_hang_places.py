"""Ranks that waited at different places, or at one without a number."""

from __future__ import annotations

from tests.records.diagnosis.test_hang import explain, wait


def test_a_rank_that_names_no_collective_is_none_that_went_on() -> None:
    nameless = (
        "[E ProcessGroupNCCL.cpp:566] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(OpType=ALLREDUCE, TensorShape=[1], Timeout(ms)=1800000) ran for 1801609 ms"
    )
    hang = explain(wait(0, 640), nameless, ranks=2)
    assert hang.late == ()
    assert hang.title.startswith("Rank 0 waited 600 s in collective 640 (ALLREDUCE)")
    assert "Rank 1 waited" in explain(nameless, ranks=1).title


def test_of_several_ranks_that_went_on_the_one_at_the_earliest_place_is_told() -> None:
    hang = explain(wait(0, 640), wait(1, 970), wait(2, 961), ranks=3)
    assert hang.title.endswith("ranks 1-2 were at 961 or later")
    assert explain(wait(0, 640), wait(1, 970), ranks=2).title.endswith("was at 970 or later")
