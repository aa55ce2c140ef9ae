"""What the product says is what is recorded: a change stands in the commit that causes it."""

from __future__ import annotations

import pytest

from tests.net.__main__ import changes
from tests.net.sayings import GROUPS, said, stored


@pytest.mark.net
@pytest.mark.parametrize("group", GROUPS)
def test_every_text_is_as_recorded(group: str) -> None:
    """`make net` names the same; with `--write` it records what is said now: read the diff."""
    assert changes(stored()[group], said(group)) == []
