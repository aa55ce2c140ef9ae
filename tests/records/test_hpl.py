"""HPL's rows and checks of the residual."""

from __future__ import annotations

import pytest

from tests.records.parse_text import parse

RULE = "-" * 80
TABLE = f"""\
T/V                N    NB     P     Q               Time                 Gflops
{RULE}
WR11C2R4        5120   128     2     2              26.71             3.3515e+00
HPL_pdgesv() start time Sun Jun 19 23:53:01 2022

{RULE}
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   4.41990053e-03 ...... PASSED
WR11C2R4       16152   192     3     2              75.74              3.710e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   4.41990053e+03 ...... FAILED
"""
Found = list[tuple[int, str, float, str]]


def found(text: str) -> Found:
    return [
        (line, hit.metric, hit.value, hit.variant)
        for line, hit, _ in parse(text.encode())
        if hit.scope == "global"
    ]


def test_rows_and_checks() -> None:
    small, large = "N=5120 NB=128 P=2 Q=2", "N=16152 NB=192 P=3 Q=2"
    assert found(TABLE) == [
        (3, "gflops", 3.3515, small),
        (3, "solve_time", 26.71, small),
        (3, "world_size", 4.0, ""),
        (7, "residual", 4.41990053e-03, small),
        (8, "gflops", 37.1, large),
        (8, "solve_time", 75.74, large),
        (8, "world_size", 6.0, ""),
        (9, "residual", 4.41990053e03, f"{large} failed"),
    ]


@pytest.mark.parametrize("prefix", ["0: ", "[1,0]<stdout>:", "   "])
def test_behind_the_prefix_of_a_launcher(prefix: str) -> None:
    row = TABLE.splitlines()[2]
    assert found(prefix + row) == [
        (1, metric, value, variant) for _, metric, value, variant in found(row)
    ]


def test_rate_of_a_gpu_beside_that_of_all() -> None:
    row = "WC00C2R4      264192  1024     4     2              26.12     4.7065e+05 ( 5.883e+04)"
    assert ("gflops", 470650.0) in [(metric, value) for _, metric, value, _ in found(row)]


@pytest.mark.parametrize(
    "text",
    [
        TABLE.splitlines()[2][:-4],
        TABLE.splitlines()[2][:-12],
        TABLE.splitlines()[5][:-3],
        "WR11C2R4   N=5000  NB=128  P=2  Q=2  Time=6.91s  12.073 Gflops  PASSED",
        "UT | WR11C2R4 | 8000 192 8 10 10.73 | 3.18E+01 |",
        "WR11C2R4        5120   128     2     2              26.71   0: [rank0] 3.3515e+00",
    ],
)
def test_cut_and_interleaved_lines_state_nothing(text: str) -> None:
    assert not found(text)
