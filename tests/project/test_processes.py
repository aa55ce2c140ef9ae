"""The processes of `make test`: which file of tests one runs next, and its garbage."""

from __future__ import annotations

import gc

import pytest

from tests.processes import SHARED, WITH_A_LAB, has_a_lab, next_file, unfinished

LAB, OTHER = f"{WITH_A_LAB[1]}test_states.py", "tests/plans/test_cost.py"


@pytest.mark.parametrize(
    ("labs", "expected"), [(0, LAB), (1, LAB), (2, OTHER), (3, OTHER)], ids=str
)
def test_labs_run_in_half_of_the_processes(labs: int, expected: str) -> None:
    assert next_file([LAB, OTHER], labs=labs, most=2) == expected
    assert next_file([OTHER, LAB], labs=labs, most=2) == expected


def test_nobody_waits_where_only_one_kind_is_left() -> None:
    assert next_file([LAB], labs=2, most=2) == LAB
    assert next_file([OTHER], labs=0, most=2) == OTHER


def test_the_first_of_a_kind_is_begun_first() -> None:
    assert next_file([OTHER, "a", LAB, "b"], labs=2, most=2) == OTHER
    assert next_file([OTHER, LAB, f"{LAB}x"], labs=0, most=2) == LAB


def test_tests_that_share_a_lab_have_one() -> None:
    assert has_a_lab(SHARED)
    assert not has_a_lab(OTHER)


def test_a_file_of_which_a_test_has_not_ended_is_unfinished() -> None:
    assert unfinished({LAB: {"a": True, "b": False}, OTHER: {"c": True}}) == [LAB]


def test_garbage_is_collected_but_not_looked_for_in_what_was_imported() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
