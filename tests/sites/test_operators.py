"""What hpctrain writes for a site against the job that its operator publishes."""

import pytest

from hpc_train.base.data_folders import profile_folder
from hpc_train.sites.merge import Part, overlay
from tests.sites.operators_jobs import comparisons, not_found, script_of

TABLES = comparisons()
# A shorter text would be found in any script.
_SHORTEST = 4


@pytest.mark.parametrize("site", TABLES)
def test_the_script_says_what_the_table_says(site: str) -> None:
    """With HPCTRAIN_WRITE_GOLDEN=1 nothing changes here: correct the profile, or the table."""
    script = script_of(site, TABLES[site])
    for row in TABLES[site].rows:
        for text in row.texts:
            assert len(text) >= _SHORTEST, (row.about, text)
            assert text in script, (row.about, text)
        assert row.absent is None or row.absent not in script, (row.about, row.absent)
        assert row.texts or row.absent, row.about


@pytest.mark.parametrize("site", TABLES)
def test_each_row_has_a_source_and_each_difference_a_reason(site: str) -> None:
    table = TABLES[site]
    assert table.job["resources"]["nodes"] == 2
    for row in table.rows:
        assert 1 <= row.source <= len(table.sources), row.about
        assert row.why or row.right == "both", row.about
    used = {row.source for row in table.rows}
    assert used == set(range(1, len(table.sources) + 1)), "a source without a row"


def test_each_site_has_a_table_or_the_reason_why_not() -> None:
    shipped = {path.stem for path in profile_folder().glob("*.yaml")}
    assert not set(TABLES) & set(not_found())
    assert set(TABLES) | set(not_found()) == shipped - {"local", "slurm-generic"}
    assert all(set(one) == {"looked", "date"} for one in not_found().values())


def test_false_nothing_and_0_are_words_like_others() -> None:
    parent = {"a": True, "b": 5, "c": "x", "d": [1], "e": 1, "f": {"g": 1, "h": True}}
    child = {"a": False, "b": 0, "c": "", "d": [], "f": {"h": False}}
    whole = overlay(Part(parent, {"": "parent"}), Part(child, {"": "child"}))
    assert whole.values == {**child, "e": 1, "f": {"g": 1, "h": False}}
    assert whole.origins["a"] == whole.origins["f.h"] == "child"
    assert whole.origins["e"] == whole.origins["f.g"] == "parent"
