"""Which hosts cannot connect to which, and without which of them the others can."""

from __future__ import annotations

import pytest

from hpc_train.submissions.hosts.rendezvous_check import Gap, Place, apart

HOSTS = [Place(f"gpu{n}", f"10.0.0.{n}") for n in (1, 2, 3)]


def gap(of: int, to: int) -> Gap:
    return Gap(of=f"gpu{of}", to=f"gpu{to}", place=f"10.0.0.{to}:61000")


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ([], {}),
        ([gap(2, 1)], {"gpu2": "cannot connect to 10.0.0.1:61000 of gpu1"}),
        ([gap(1, 2)], {"gpu2": "is not reached by gpu1 at 10.0.0.2:61000"}),
        ([gap(2, 1), gap(3, 1)], {"gpu1": "is not reached by gpu2 at 10.0.0.1:61000"}),
        (
            [gap(1, 2), gap(2, 3), gap(3, 1)],
            {
                "gpu3": "is not reached by gpu2 at 10.0.0.3:61000",
                "gpu2": "is not reached by gpu1 at 10.0.0.2:61000",
            },
        ),
    ],
)
def test_the_hosts_that_are_left_out(found: list[Gap], wrong: dict[str, str]) -> None:
    assert apart(HOSTS, found) == wrong
