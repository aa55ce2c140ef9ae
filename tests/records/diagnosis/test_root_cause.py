"""Which of several failures is the root, where moments, ranks and lines are equal."""

from __future__ import annotations

from hpc_train.model.diagnosis import FirstFailure
from hpc_train.records.diagnosis.conclude import _after
from hpc_train.records.diagnosis.root_cause import OrderedSighting, choose_root, first_of
from hpc_train.records.signatures.base import Sighting
from hpc_train.records.signatures.catalogue import catalogue

SECOND = "2025-04-24T10:00:07"


def seen(
    rank: int, when: str | None = None, *, file: int = 0, line: int = 1, root: bool = False
) -> OrderedSighting:
    groups = (("root", "yes"), ("exitcode", "1")) if root else ()
    name = "torchrun_child_failed_rank" if root else "cuda_oom"
    sighting = Sighting(
        signature=name, source="a.log", line=line, text="", rank=rank, time=when, groups=groups
    )
    return OrderedSighting(
        sighting=sighting, signature=catalogue().by_id[name], file=file, when=when
    )


def root_of(*rivals: OrderedSighting, first: int | None = None) -> int | None:
    first_failure = (
        None if first is None else FirstFailure(rank=first, host="", exit_code=1, said_by="x")
    )
    root = choose_root(rivals, first_failure)
    return root.sighting.rank if root else None


def test_of_one_second_the_rank_that_was_seen_to_fail_first_counts() -> None:
    early, late = seen(0, f"{SECOND}.100"), seen(3, f"{SECOND}.900")
    assert root_of(late, early, first=3) == 3
    assert root_of(late, early, first=7) == 0
    assert root_of(late, early) == 0
    assert root_of(seen(3, "2025-04-24T10:00:08.000"), early, first=3) == 0


def test_of_one_moment_the_first_file_and_then_the_first_line_counts() -> None:
    moments = (SECOND, f"{SECOND}.5", None)
    for when in moments:
        assert root_of(seen(1, when, line=9), seen(2, when, line=5)) == 2
        assert root_of(seen(1, when, file=1), seen(2, when, line=9)) == 2
        assert root_of(seen(1, when, file=1), seen(2, when, line=9), first=1) == 1


def test_a_moment_that_one_lacks_decides_nothing() -> None:
    assert root_of(seen(1, SECOND, line=9), seen(2, line=5)) == 2
    assert root_of(seen(1, SECOND, line=5), seen(2, line=9)) == 1


def test_of_agents_that_name_one_moment_the_first_counts() -> None:
    reports = [seen(5, SECOND, root=True), seen(2, SECOND, root=True)]
    assert [first_of(order).rank for order in (reports, reports[::-1]) if first_of(order)] == [5, 2]  # type: ignore[union-attr]


def test_what_came_after_the_root_at_its_very_moment_stands_behind_it() -> None:
    root = seen(0, SECOND, line=5)
    assert _after(seen(1, SECOND, line=6), root)
    assert not _after(seen(1, SECOND, line=4), root)
    assert not _after(root, root)
    assert _after(seen(1, f"{SECOND}.1", line=4), root)
