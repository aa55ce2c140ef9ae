"""The measured figures of docs/strategies.md are those of the stored study of the strategies."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.training_strategies import STRATEGIES

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "results/studies/strategies-two-cores/report.md"
PAGE = ROOT / "docs/strategies.md"


def rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, without its head."""
    lines = text.partition(f"\n{heading}\n")[2].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def measured() -> dict[str, list[str]]:
    """Return step, speedup, states, their formula, bytes sent, their formula; on two ranks."""
    report = REPORT.read_text(encoding="utf-8")
    speed = {(row[0].split()[0], row[1]): row for row in rows(report, "## Strategies")}
    memory = rows(report, "## Memory and traffic of a rank")
    found = {}
    for row in memory:
        name, ranks = row[0].split()[0], row[1]
        if ranks == "2" or name == "single":
            step, _, speedup = speed[name, ranks][2:5]
            found[name] = [step, speedup, *row[3:7]]
    return found


def test_the_page_has_what_was_measured() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = {row[0].split("`")[1]: row[1:7] for row in rows(page, "## The comparison")}
    assert len(shown) == 8
    assert shown.keys() <= set(STRATEGIES)
    assert shown == measured()
