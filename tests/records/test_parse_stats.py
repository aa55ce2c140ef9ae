"""Counts of several logs add up."""

from __future__ import annotations

from hpc_train.records.parse_stats import LineSample, ParseStats


def seen(lines: int, source: str = "a.log") -> dict[str, LineSample]:
    return {"p": LineSample(source, 1, "text", lines)}


def test_lines_of_further_logs_are_added() -> None:
    whole = ParseStats()
    for source, lines in (("a.log", 3), ("b.log", 4), ("c.log", 5)):
        one = ParseStats(
            known=seen(lines, source), nearly=seen(10 * lines), refused=seen(100 * lines)
        )
        one.damaged[source] = lines
        whole.add(one)
    assert [kind["p"].lines for kind in (whole.known, whole.nearly, whole.refused)] == [
        12,
        120,
        1200,
    ]
    assert whole.known["p"].source == "a.log"
    assert whole.damaged == {"a.log": 3, "b.log": 4, "c.log": 5}
    assert whole.lines == 12 + 120 + 12
