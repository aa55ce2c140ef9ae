"""What the product says is what is recorded: a change stands in the commit that causes it."""

import pytest

from tests.net.__main__ import changes
from tests.net.sayings import GROUPS, said, stored, text_of


@pytest.mark.net
@pytest.mark.parametrize("group", GROUPS)
def test_every_text_is_as_recorded(group: str) -> None:
    """`make net` names the same; with `--write` it records what is said now: read the diff."""
    found = changes(stored()[group], said(group))
    shown = [text_of(one.removeprefix("changed: ")) for one in found[:1] if one.startswith("ch")]
    assert found == [], "".join(shown)
