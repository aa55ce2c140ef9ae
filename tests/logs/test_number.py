"""Numbers as programs print them, in our units."""

from hpc_train.diagnosis.signature_matcher import Clock
from hpc_train.logs.read_log import LineSample, ParseStats


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


SHORT = "[E0131 12:00:00.123 file.cpp:1] text"


def test_the_year_is_looked_for_near_the_beginning() -> None:
    clock = Clock()
    for _ in range(199):
        clock.look("text")
    assert clock.wants_year
    assert clock.time(SHORT) is None
    clock.look("2025-01-31 11:59:59 text")
    assert not clock.wants_year
    assert clock.time(SHORT) == "2025-01-31T12:00:00.123"


def test_the_year_of_a_late_line_is_not_looked_for() -> None:
    clock = Clock()
    for _ in range(200):
        clock.look("text")
    assert not clock.wants_year
    clock.look("2025-01-31 11:59:59 text")
    assert clock.time(SHORT) is None
