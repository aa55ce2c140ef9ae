"""What a profile may not say, and the words that refuse it, from refused.yaml."""

from __future__ import annotations

from pathlib import Path

import yaml


def refused(section: str) -> list[tuple[str, str]]:
    """Return texts of a profile, each with what is said of it."""
    rows = yaml.safe_load((Path(__file__).parent / "refused.yaml").read_bytes())[section]
    return [(row["text"], row["said"]) for row in rows]
