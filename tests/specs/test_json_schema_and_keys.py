"""The page of all keys of a profile is what the types say, and each key is explained."""

from __future__ import annotations

import re
from pathlib import Path

from hpc_train.specs.json_schema_and_keys import site_reference

PAGE = Path(__file__).resolve().parents[2] / "docs" / "site-reference.md"


def test_the_page_is_what_the_types_say() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == site_reference(), "hpctrain site schema --markdown >docs/site-reference.md"


def test_every_key_is_explained() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|.*\| (.*) \|$", site_reference(), re.MULTILINE)
    assert len(rows) > 150
    assert [key for key, meaning in rows if not meaning.strip()] == []
