"""Which of several failures is the root, where moments, ranks and lines are equal."""

import pytest
from msgspec.structs import replace

from hpc_train.diagnosis.diagnosis import FirstFailure
from hpc_train.diagnosis.scan_logs import (
    CAUSE,
    ECHO,
    ENDED,
    EXIT,
    RAISED_AGAIN,
    cause_level,
    choose_root,
    first_of,
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
