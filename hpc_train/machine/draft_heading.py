"""The first lines of a drafted profile: of what it is, and where its values come from."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.machine.yaml_text import line, remark
from hpc_train.sites.profile import SCHEMA


def heading(name: str, date: str, description: str, ask: str, source: str) -> Iterator[str]:
    """Yield the lines up to the scheduler; `ask` is what the description leaves open."""
    yield remark("A draft of `hpctrain site init`: check every line, then run")
    yield remark(f"hpctrain site show {name}")
    yield line("schema", SCHEMA)
    yield line("name", name)
    yield line("description", description, ask)
    yield line("verified_on", date)
    yield "sources:"
    yield line("  - what", source)
    yield line("    date", date)
    yield line("    confidence", "high")
