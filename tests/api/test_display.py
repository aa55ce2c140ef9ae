"""What a notebook shows: lines without control characters, and no text of a log is interpreted."""

import html
from pathlib import Path

import pytest

from hpc_train.api.display import ShownText, image, shown_path

HOSTILE = "<script>alert(1)</script> & $x^2$ <img src=x onerror=y> \"q\" 'q' \x1b[31m \u202e"


def test_no_text_is_interpreted() -> None:
    found = ShownText(f"{HOSTILE}\n\tlast\n")._repr_mimebundle_()
    plain = HOSTILE.replace("\x1b", " ").replace("\u202e", " ")
    assert found["text/plain"] == f"{plain}\n\tlast"
    inner = found["text/html"].removeprefix('<pre style="overflow-x:auto">').removesuffix("</pre>")
    assert inner == html.escape(found["text/plain"])
    assert "<" not in image(HOSTILE, b"image")[1:]


def test_a_path_elsewhere_is_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(tmp_path / "a" / "b") == "a/b"
    assert shown_path(Path("/elsewhere/b")) == "/elsewhere/b"
