"""What a notebook shows: three formats, and no text of a log or name is interpreted."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from hpc_train.api.blocks import (
    Block,
    Picture,
    Rows,
    Sentences,
    Title,
    Verbatim,
    as_html,
    as_text,
    shown_path,
)

HOSTILE = (
    "<script>alert(1)</script> & \"q\" 'q' `a` |b| *c* _d_ [e](javascript:f) $x^2$ ~g~ "
    "https://h.example <img src=x onerror=y> \\ # 1. \x1b[31m \u202e {{i}} @j"
)
LETTERS = st.characters(codec="utf-8") | st.sampled_from("<>&`*_|$#-+[]()~\\\n!\"' 1.")
WORDS = st.text(LETTERS, max_size=40)


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


def blocks_of(text: str) -> list[Block]:
    return [
        Title(text),
        Sentences([text, text], text),
        Rows(["head", text], [["cell", text], [text, "cell"]], text, frozenset({1})),
        Picture(text, b"image"),
    ]


def one_line(text: str) -> str:
    return " ".join(as_text([Verbatim(text)]).split())


@given(WORDS)
@example(HOSTILE)
@example("- a")
@example("1) a")
def test_html_contains_texts_and_our_tags_only(text: str) -> None:
    page = Page(as_html([*blocks_of(text), Verbatim(text)]))
    allowed = {"div", "table", "thead", "tbody", "tr", "th", "td", "img", "pre"}
    assert page.tags <= allowed
    assert page.names <= {"style", "class", "alt", "src"}
    assert page.text.count(one_line(text)) >= 5 or not one_line(text)


def test_a_terminal_gets_no_control_characters() -> None:
    assert not re.search("[\x00-\x08\x1b\u202e]", as_text(blocks_of(HOSTILE)))
    assert as_text([Rows(("a", "b"), [("x", "1"), ("yy", "22")], right=frozenset({1}))]) == (
        "a    b\nx    1\nyy  22"
    )
    assert as_text([Rows(("a",), []), Sentences([], "None")]) == ""


def test_a_path_elsewhere_is_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(tmp_path / "a" / "b") == "a/b"
    assert shown_path(Path("/elsewhere/b")) == "/elsewhere/b"
