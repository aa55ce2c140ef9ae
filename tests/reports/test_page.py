"""The HTML page: complete, self-contained, the same bytes; hostile words are words."""

import base64
import hashlib
import re
import time
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from hpc_train.reports.page.render import MOST_ENDS, render
from hpc_train.reports.report import Report
from tests.reports.finished import HOSTILE, report
from tests.reports.whole import TURNED, WORDS, whole


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of all of them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [str(given[name]) for _, given in self.found if name in given]

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [given for name, given in self.found if name == tag]


@pytest.fixture(scope="module")
def shown() -> str:
    return render(whole())


@pytest.fixture(scope="module")
def elements(shown: str) -> Elements:
    return Elements(shown)


def test_the_same_report_gives_the_same_bytes(shown: str) -> None:
    assert render(whole()) == shown


def test_hostile_words_change_no_element(elements: Elements) -> None:
    harmless = Elements(render(whole("plain words", "attribute", "a problem")))
    named = [[(tag, sorted(given)) for tag, given in page.found] for page in (elements, harmless)]
    assert named[0] == named[1]


def test_hostile_words_are_text(elements: Elements) -> None:
    # The summary, the notes, a diagnosis, the figures' numbers ...
    assert elements.text.count(WORDS) >= 8
    assert " ".join(HOSTILE.replace("\x1b", r"\x1b").split()) in elements.text


def test_what_would_change_how_a_page_reads_is_escaped(shown: str, elements: Elements) -> None:
    assert r"abc\u202edcba\x1b[31m\udc80" in elements.text
    assert not {"\u202e", "\x1b"} & set(shown)
    shown.encode()
    name = next(row["run_id"] for row in whole().run_rows if row["state"] != "COMPLETED")
    told = msgspec.structs.replace(whole(), diagnoses={name: f"a\n\tb\x07{TURNED}"})
    assert r"a" + "\n\tb" + r"\x07abc\u202e" in Elements(render(told)).text


def test_the_page_loads_nothing(shown: str, elements: Elements) -> None:
    addresses = elements.values("src") + elements.values("href") + elements.values("action")
    assert [a for a in addresses if not a.startswith(("#", "data:"))] == []
    assert not re.search(r"@import|url\((?!#)", shown)
    assert [name for _, given in elements.found for name in given if name.startswith("on")] == []


def test_only_the_pages_own_script_may_run(shown: str, elements: Elements) -> None:
    policy = elements.of("meta")[1]["content"] or ""
    script = shown.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert len(elements.of("script")) == 1
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def test_every_link_has_its_place(elements: Elements) -> None:
    places = Counter(elements.values("id"))
    assert {place for place, count in places.items() if count > 1} == set()
    links = {link[1:] for link in elements.values("href") if link.startswith("#")}
    assert links - set(places) == set()
    assert {"e1", "e2", "r16"} <= links


def test_everything_of_the_report_is_there(elements: Elements) -> None:
    made = whole()
    for line in (*made.notes[:-2], *made.checks):
        assert line in elements.text
    for line in made.summary:
        bare = line.removeprefix("Measured: ").removeprefix("Caveats: ")
        assert bare.removeprefix("Not known: ")[1:] in elements.text
    for row in made.tables[0].rows:
        for cell in row:
            assert cell in elements.text
    assert "PARTIAL" in elements.text
    assert "2.4.0+cu124 (15x)" in elements.text


@pytest.mark.long
def test_a_page_of_10_000_runs() -> None:
    large = many(10_000)
    start = time.process_time()
    page = render(large)
    assert time.process_time() - start <= 3
    assert len(page.encode()) <= 5_000_000
    assert page.count("<th scope=row>") == 10_000
    # What is left out is said.
    assert f"{10_000 - MOST_ENDS} more are not shown" in page


def many(count: int) -> Report:
    """Every run failed in its own way, with its own diagnosis."""
    made = report()
    rows = [_row(dict(made.run_rows[0]), i) for i in range(count)]
    runs = next(table for table in made.tables if table.key == "runs")
    runs = msgspec.structs.replace(runs, records=tuple(rows))
    return msgspec.structs.replace(
        made,
        tables=(made.tables[0], runs),
        diagnoses={row["run_id"]: f"{row['run_id']}: a line of a log\n" * 50 for row in rows},
    )


def _row(row: dict[str, Any], i: int) -> dict[str, Any]:
    measured = dict.fromkeys(("step_time_s", "samples_per_second", "accuracy", "wall_s"), 0.1 + i)
    return {
        **row, **measured, "run_id": f"study-nodes={i % 64}-launcher=torchrun-{i}", "nodes": i % 64,
        "state": "FAILED", "problem": f"rank {i} on host a{i}: exit code 3, RuntimeError: {i}",
    }  # fmt: skip
