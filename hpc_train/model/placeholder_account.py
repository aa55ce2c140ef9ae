"""A sample account of a site, for jobs that are not submitted."""

from __future__ import annotations

import re

from hpc_train.model.site import SiteProfile

_ANY = "project"
# Sample texts for the elements of a simple pattern: project_[0-9]+, (def|rrg)-.+
_SIGNS = (
    (r"\(([^|)]*)[^)]*\)", r"\1"),
    (r"(\[0-9\]|\\d)[+*]?", "1"),
    (r"\.[+*]|\[a-z\][+*]?", "x"),
)


def sample_account(profile: SiteProfile) -> str:
    """Return the profile's example, else a text that matches its pattern."""
    if profile.account.example:
        return profile.account.example
    pattern = text = profile.account.pattern or ""
    for sign, word in _SIGNS:
        text = re.sub(sign, word, text)
    return text if text and re.fullmatch(pattern, text) else _ANY
