"""The measured figures of docs/strategies.md are those of the stored studies of the strategies."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.training_strategies import STRATEGIES

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ROOT / "results/studies"
PAGE = ROOT / "docs/strategies.md"
MEMORY = ("states", "formula", "sent/step", "formula 2")


def rows(text: str, start: str) -> list[dict[str, str]]:
    """Return the first table after a text: for each row, cell by column."""
    lines = iter(text.partition(start)[2].splitlines())
    heads = cells(next(line for line in lines if line.startswith("|")))
    for number, head in enumerate(heads):
        heads[number] = f"{head} 2" if head in heads[:number] else head
    next(lines)
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append(dict(zip(heads, cells(line), strict=True)))
    return table


def cells(line: str) -> list[str]:
    """Return the cells of a row, without units."""
    return [cell.partition(" [")[0].strip("` ") for cell in line.strip("|").split("|")]


def measured(study: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return the values of each strategy and number of ranks."""
    report = (STUDIES / study / "report.md").read_text(encoding="utf-8")
    found: dict[tuple[str, str], dict[str, str]] = {}
    for title in ("\n## Strategies\n", "\n## Memory and traffic of a rank\n"):
        for row in rows(report, title):
            key = (row["strategy"].split()[0], row["ranks"])
            found.setdefault(key, {}).update(row)
    return found


def test_the_page_has_what_was_measured_on_two_cores() -> None:
    study = measured("strategies-two-cores")
    page = rows(PAGE.read_text(encoding="utf-8"), "report results/studies/strategies-two-cores`")
    assert {row["strategy"] for row in page} <= set(STRATEGIES)
    assert len(page) == 8
    for row in page:
        own = study[row["strategy"], "1" if row["strategy"] == "single" else "2"]
        assert row == {
            "strategy": row["strategy"], "step": own["step"], "speedup": own["speedup"],
            "exposed": own["exposed comm."], "states": own["states"], "formula": own["formula"],
            "sent in a step": own["sent/step"], "formula 2": own["formula 2"],
        }  # fmt: skip


def test_the_page_has_what_was_measured_on_the_lab() -> None:
    study = measured("strategies-lab")
    page = rows(PAGE.read_text(encoding="utf-8"), "report results/studies/strategies-lab`")
    assert len(page) == 7
    for row in page:
        two, four = (study[row["strategy"], ranks] for ranks in ("2", "4"))
        assert list(row.values())[1:] == [
            *(own["states"] for own in (two, four)),
            *(own[name] for own in (two, four) for name in ("sent/step", "formula 2")),
        ]
