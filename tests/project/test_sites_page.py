"""The page of the shipped sites is what the profiles say."""

from __future__ import annotations

from pathlib import Path

from hpc_train.data_folders import profile_folder
from hpc_train.pipeline.site.profile_comparison_page import site_matrix

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sites.md"


def test_the_page_is_what_the_profiles_say() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == site_matrix(), "hpctrain site list --markdown >docs/sites.md"


def test_every_shipped_site_has_a_row() -> None:
    rows = [line.split("|")[1].strip() for line in site_matrix().splitlines() if "|" in line]
    names = {path.stem for path in profile_folder().glob("*.yaml")} - {"local"}
    assert names == set(rows) - {"Site", "---"}
    assert len(names) >= 25
