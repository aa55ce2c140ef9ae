"""Which of several failures is the root, where moments, ranks and lines are equal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hpc_train.diagnosis.diagnosis import FirstFailure
from hpc_train.diagnosis.root_cause import (
    CAUSE,
    CONSEQUENCE,
    ECHO,
    ENDED,
    EXIT,
    RAISED_AGAIN,
    cause_level,
    choose_root,
    first_of,
    specific,
    with_times,
)
from hpc_train.diagnosis.signatures import Sighting, catalogue

SECOND = "2025-04-24T10:00:07"


def seen(
    rank: int, when: str | None = None, *, file: int = 0, line: int = 1, root: bool = False
) -> Sighting:
    groups = (("root", "yes"), ("exitcode", "1")) if root else ()
    name = "torchrun_child_failed_rank" if root else "cuda_oom"
    known, place = catalogue().by_id[name], {"source": "a.log", "line": line, "file": file}
    return Sighting(of=known, text="", rank=rank, time=when, when=when, groups=groups, **place)  # type: ignore[arg-type]


def root_of(*rivals: Sighting, first: int | None = None) -> int | None:
    first_failure = (
        None if first is None else FirstFailure(rank=first, host="", exit_code=1, said_by="x")
    )
    root = choose_root(rivals, first_failure)
    return root.rank if root else None


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


def of(name: str, text: str = "", *, line: int = 1, **groups: str) -> Sighting:
    known, stated = catalogue().by_id[name], tuple(groups.items())
    return Sighting(of=known, source="a.log", line=line, text=text, groups=stated)


@pytest.mark.parametrize(
    ("one", "level"),
    [
        (of("cuda_oom"), CAUSE),
        (of("python_exception", "ValueError: x"), CAUSE),
        (of("python_exception", "ConnectionResetError: [Errno 104]"), ECHO),
        (of("python_exception", "RuntimeError: NCCL communicator was aborted"), ECHO),
        (of("python_exception", "RuntimeError: Connection closed by peer"), ECHO),
        (of("python_exception", "KeyboardInterrupt"), ECHO),
        (of("python_exception", "EOFError", file="/lib/multiprocessing/connection.py"), ECHO),
        (of("python_exception", "EOFError", file="/work/connection.py"), CAUSE),
        # Only a general line may be an echo by its words.
        (of("cuda_oom", "ConnectionResetError"), CAUSE),
        (of("python_exception", "Caught ValueError in replica 3 on device 3."), RAISED_AGAIN),
        (of("python_exception", "Caught OSError in DataLoader worker process 0."), RAISED_AGAIN),
        (of("python_exception", "Exception:"), RAISED_AGAIN),
        (of("python_exception", "Exception: no data"), CAUSE),
        (of("slurm_requeued"), ENDED),
        (of("slurm_time_limit"), ECHO),
        (of("torchrun_child_failed_rank", exitcode="1"), EXIT),
        (of("torchrun_child_failed_rank", exitcode="-11"), ECHO),
    ],
)  # fmt: skip
def test_the_distance_of_a_line_from_the_root_cause(one: Sighting, level: int) -> None:
    assert cause_level(one) == level


def test_levels_are_in_the_order_from_a_cause_to_its_consequences() -> None:
    levels = (CAUSE, ECHO, RAISED_AGAIN, EXIT, ENDED, CONSEQUENCE)
    assert sorted(levels) == list(levels)


def test_a_line_without_a_time_has_that_of_the_line_before_it_in_its_file() -> None:
    later = f"{SECOND[:-1]}9"
    lines = [seen(0), seen(0, SECOND), seen(0), seen(0, file=1), seen(0, later), seen(0)]
    assert [one.when for one in with_times(lines)] == [None, SECOND, SECOND, None, later, later]


def test_a_general_reading_of_a_line_gives_way_to_a_specific_one() -> None:
    general, own = of("python_exception", "x"), of("cuda_oom", "x")
    other = of("python_exception", "x", line=2)
    assert specific([general, own, other]) == [own, other]
    assert specific([general, other]) == [general, other]
    elsewhere = replace(general, file=1)
    assert specific([elsewhere, own]) == [elsewhere, own]


@pytest.mark.parametrize(
    ("codes", "rank"),
    [
        ((-15, 1), 1), ((143, 1), 1), ((1, 143), 0), ((-9, 1), 0), ((144, 1), 0), ((-15, 143), 0),
    ],
)  # fmt: skip
def test_a_rank_that_was_terminated_is_not_the_first_failure(
    codes: tuple[int, int], rank: int
) -> None:
    reports = [
        replace(one, groups=(("root", "yes"), ("exitcode", str(code))))
        for one, code in zip(
            (seen(0, SECOND, root=True), seen(1, SECOND, root=True)), codes, strict=True
        )
    ]
    first = first_of([*reports, seen(7)])
    assert first is not None
    assert (first.rank, first.exit_code, first.said_by) == (rank, codes[rank], "torchrun")
