"""Options of torchrun by version of torch."""

from __future__ import annotations

from hpc_train.model.versions import parts, within

# From which torch on; for a torch that nobody names, only what every supported one has.
_SINCE = {"local-addr": ">=2.0", "numa-binding": ">=2.9"}
_SUPPORTED = "2.4"
_DASHES = ">=2.0"


def has_flag(name: str, torch: str | None) -> bool:
    """Say whether torchrun of that torch has an option."""
    return name not in _SINCE or within(parts(torch or _SUPPORTED), _SINCE[name])


def flag(name: str, torch: str | None) -> str:
    """Return an option as that torch spells it: older ones know underscores only."""
    dashes = within(parts(torch or _SUPPORTED), _DASHES)
    return f"--{name}" if dashes else f"--{name.replace('-', '_')}"
