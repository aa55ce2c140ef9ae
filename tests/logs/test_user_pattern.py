"""Patterns of one's own: asked first, scaled, with unit and scope, near their literal."""

import time
from pathlib import Path

from hpc_train.jobs.log_selection import LogPattern
from hpc_train.logs.collect import collect, wanted
from hpc_train.logs.read_log import ParseStats

TOOK = LogPattern(
    regex=r"rank (?P<rank>\d+) step (?P<step>\d+) took (?P<step_time>[\d.]+) ms, (?P<power>\d+) W",
    scope="per_rank",
    units={"power": "W"},
    scale={"step_time": 1e-3},
)


def found(folder: Path, text: str, *patterns: LogPattern, parser: str = "auto") -> list[object]:
    log = folder / "a.log"
    log.write_text(text)
    return [
        (r.parser, r.metric, r.value, r.unit, r.scope, r.step, r.rank)
        for r in collect("r", [log], wanted(parser, patterns=patterns))
    ]


def test_groups_are_metrics(tmp_path: Path) -> None:
    assert found(tmp_path, "rank 3 step 7 took 250.0 ms, 300 W\n", TOOK) == [
        ("pattern", "step_time", 0.25, "s", "per_rank", 7, 3),
        ("pattern", "power", 300.0, "W", "per_rank", 7, 3),
    ]


def test_a_pattern_comes_before_the_built_in_parsers(tmp_path: Path) -> None:
    text = "iter 5: loss 2.5, time 100.0ms, mfu 30.0%\n"
    mine = LogPattern(regex=r"iter \d+: loss (?P<loss>[\d.]+)", scope="global")
    assert [row[0] for row in found(tmp_path, text)][:1] == ["nanogpt"]  # type: ignore[index]
    assert found(tmp_path, text, mine) == [("pattern", "loss", 2.5, "1", "global", None, None)]


def test_patterns_alone_and_by_number(tmp_path: Path) -> None:
    text = "iter 5: loss 2.5, time 100.0ms\nhere loss=1.5\n"
    first = LogPattern(regex=r"nowhere (?P<loss>[\d.]+)", scope="global")
    second = LogPattern(regex=r"loss=(?P<loss>[\d.]+)", scope="global")
    assert found(tmp_path, text, first, second, parser="pattern") == [
        ("pattern", "loss", 1.5, "1", "global", None, None)
    ]


def test_only_the_neighbourhood_of_the_literal_is_matched(tmp_path: Path) -> None:
    slow = LogPattern(regex=r"a.*b.*c.*loss=(?P<loss>[\d.]+)", scope="global", literal="loss=")
    text = "abc" * 20_000 + " loss=0.5 " + "x" * 60_000 + "\n"
    assert found(tmp_path, text, slow) == [("pattern", "loss", 0.5, "1", "global", None, None)]
    assert found(tmp_path, "abc" + "y" * 2_000 + "loss=0.5\n", slow) == []


def test_a_pattern_that_takes_too_long_is_left_out_and_named(tmp_path: Path) -> None:
    slow = LogPattern(regex=r"took (?P<loss>(?:\d|\d\d)+)x", scope="global")
    good = LogPattern(regex=r"took (?P<step_time>\d{1,2})", scope="per_rank")
    log, census = tmp_path / "a.log", ParseStats()
    log.write_text("took 17x\n" + f"took {'1' * 60}\n" * 50 + "took 18x\n")
    begun = time.monotonic()
    rows = list(collect("r", [log], wanted("auto", patterns=(slow, good)), census=census))
    assert time.monotonic() - begun < 30
    assert [row.value for row in rows if row.metric == "loss"] == [17.0]
    assert sum(row.metric == "step_time" for row in rows) == 52
    (said,) = [text for text in census.refusals() if "takes too long" in text]
    assert said == f"the pattern {slow.regex!r} takes too long, and is not used from {log}:2 on"


def test_each_pattern_reads_the_line_and_the_first_has_the_metric(tmp_path: Path) -> None:
    loss, other, speed = (
        LogPattern(regex=regex, scope="global")
        for regex in (r"loss=(?P<loss>\d+)", r"loss=\d(?P<loss>\d+)", r"ips (?P<tflops>\d+)")
    )
    rows = found(tmp_path, "loss=12 ips 3\n", loss, other, speed)
    assert [row[1:3] for row in rows] == [("loss", 12.0), ("tflops", 3.0)]  # type: ignore[index]


def test_times_without_a_step_are_numbered_by_their_lines(tmp_path: Path) -> None:
    took = LogPattern(regex=r"took (?P<step_time>\d+)", scope="per_rank")
    rows = found(tmp_path, "took 3\n[rank1]: took 4\nnothing\ntook 5\n[rank1]: took 6\n", took)
    assert [(row[2], row[5], row[6]) for row in rows] == [  # type: ignore[index]
        (3.0, 1, None), (4.0, 1, 1), (5.0, 2, None), (6.0, 2, 1),
    ]  # fmt: skip
