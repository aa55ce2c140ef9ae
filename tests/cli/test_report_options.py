"""`hpctrain report`: the interval that is asked for, and benchmarks whose gate is a bandwidth."""

import json
from pathlib import Path

import pytest

from tests.conftest import Hpctrain

ROWS = "".join(
    f"{n}-{r},{n},4,{100 * n * (1 + 0.01 * r)}\n" for n in (1, 2) for r in (0, 1, 2)
)  # fmt: skip
TABLE = "run,nodes,gpus_per_node,samples_per_second\n" + ROWS
BUS = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid      1 on         a device  0 [0x01] NVIDIA H100
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    10.00    2.00    3.50      0
"""


TITAN = (
    "[rank0]:[titan] 2025-06-04 08:51:58,557 - root - INFO - step: {}  loss:  8.2467  "
    "memory: 47.01GiB(50.0%)  tps: {}  tflops: 40.1  mfu: 12.3%\n"
)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--gpus", "8"), "--gpus has 1 number, and there are 2 logs: a.log, b.log"),
        (
            ("--ranks", "8,4"),
            "b.log: the log says world_size 16, not 4 (b.log:1), --ranks 4 states",
        ),
        (("--gpus", "8,x"), "--gpus 8,x: a whole number from 1 for each log is needed"),
    ],
)
def test_sizes_that_do_not_fit_the_logs_are_refused(
    hpctrain: Hpctrain, words: tuple[str, ...], reason: str
) -> None:
    Path("a.log").write_text(TITAN.format(1, 7000))
    Path("b.log").write_text("Namespace(batch_size=64, world_size=16)\n" + TITAN.format(1, 6300))
    done = hpctrain("report", "a.log", "b.log", *words)
    assert done.returncode == 2
    assert reason in done.stderr


def test_benchmarks_are_bandwidths_by_message_size(hpctrain: Hpctrain) -> None:
    row = "  {}  2  float  sum  -1  {}  {}  {}  0  {}  {}  {}  0\n"
    head = BUS.partition("           8 ")[0].replace(
        "#wrong\n", "#wrong    time   algbw   busbw #wrong\n"
    )
    table = "".join(
        row.format(size, 10, rate / 2, rate, 20, rate / 4, rate / 2)
        for size, rate in ((1024, 2.0), (1 << 20, 60.0), (1 << 30, 100.0))
    )
    Path("a.log").write_text(head + table)
    Path("b.log").write_text(head + table + table.replace("100.0", "90.0"))
    Path("c.log").write_text("NCCL version 2.22.3+cuda12.4\nno table\n")
    done = hpctrain("report", "a.log", "b.log", "-f", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (
        "100 GB/s bus bandwidth at 1 GiB, half of it from 1 MiB; 10 us at 1 KiB"
        in found["summary"][0]
    )
    largest = [
        (row["table"], row["busbw"]) for row in found["rows"] if row["message_size"] == 1 << 30
    ]
    assert largest == [("a.log", 100), ("b.log table 1", 100), ("b.log table 2", 90)]
    drawn = hpctrain("report", "a.log", "b.log", "-o", "bw.pdf")
    assert (drawn.returncode, Path("bw.pdf").read_bytes()[:4]) == (0, b"%PDF")
    partial = hpctrain("report", "a.log", "c.log")
    assert partial.returncode == 3
    assert "c.log: no line of a known format" in partial.stdout


@pytest.mark.parametrize(
    ("gates", "stated", "code"),
    [
        ("{busbw: 3}", 1, 0),
        ("{busbw: 4}", 1, 1),
        ("{efficiency: 0.5}", 1, 1),
        ("{busbw: 3}", 2, 1),
    ],
)
def test_a_bandwidth_is_a_result_where_it_is_the_gate(
    hpctrain: Hpctrain, gates: str, stated: int, code: int
) -> None:
    Path("a.log").write_text(BUS)
    size = f"{{nodes: {stated}, gpus_per_node: 1}}"
    Path("points.yaml").write_text(f"gates: {gates}\npoints:\n  a.log: {size}\n")
    done = hpctrain("report", "points.yaml", "--check")
    assert done.returncode == code, done.stdout + done.stderr
    assert ("missing point" in done.stderr) == ("busbw" not in gates or stated == 2)
    # Without --check the code says whether each run has what was asked for.
    missed = "busbw" not in gates or stated == 2
    assert hpctrain("report", "points.yaml").returncode == (3 if missed else 0)


@pytest.mark.parametrize("words", [("report", "t.csv"), ("compare", "t.csv", "t.csv")])
def test_a_dash_is_stdout_and_no_folder(hpctrain: Hpctrain, words: tuple[str, ...]) -> None:
    Path("t.csv").write_text(TABLE)
    plain = hpctrain(*words, "-f", "json")
    dash = hpctrain(*words, "-f", "json", "-o", "-")
    assert (dash.stdout, dash.returncode) == (plain.stdout, plain.returncode)
    assert not Path("-").exists()


@pytest.mark.parametrize("name", ["", "-"])
def test_a_file_that_is_not_written_to_stdout_needs_a_name(hpctrain: Hpctrain, name: str) -> None:
    Path("t.csv").write_text(TABLE)
    done = hpctrain("report", "t.csv", "--junit", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--junit {name!r} names no file" in done.stderr
