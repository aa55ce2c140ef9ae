"""Output of PBS's `qstat -Bf`, `qstat -Qf` and `pbsnodes -a` -> attributes by name.

As JSON (`-F json`), which some servers write broken (openpbs 1255, 2541), or as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Attributes = dict[str, dict[str, str]]
# The key of the JSON -> what a text begins an entry with.
_HEADS = {"Server": "Server: ", "Queue": "Queue: ", "nodes": ""}


def from_json(text: str, key: str) -> Attributes | None:
    """Return name -> attributes, `resources_max.walltime` for nested ones; None if it is no JSON.

    `key` is `Server`, `Queue` or `nodes`.
    """
    try:
        answer = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    found = answer.get(key, {}) if isinstance(answer, dict) else None
    if not isinstance(found, dict):
        return None
    if any(not isinstance(one, dict) for one in found.values()):
        # Some versions write the attributes of the server without its name.
        found = {str(answer.get("pbs_server", "pbs")): found}
    # The version is beside the entries, and in newer versions an attribute of the server as well.
    known = {"pbs_version": str(answer["pbs_version"])} if "pbs_version" in answer else {}
    own = known if key == "Server" else {}
    return {str(name): {**own, **dict(_flat(one))} for name, one in found.items()}


def _flat(attributes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{part}", str(one)) for part, one in value.items())
        else:
            yield name, str(value)


def from_text(text: str, key: str) -> Attributes:
    """Return name -> attributes of the output without `-F json`.

    A long value continues on lines that begin with a tab.
    """
    head = _HEADS[key]
    found: Attributes = {}
    own: dict[str, str] = {}
    for line in text.replace("\n\t", "").splitlines():
        name, sign, value = line.strip().partition(" = ")
        if sign and line[:1].isspace():
            own[name] = value
        elif line.strip() and not line[:1].isspace() and line.startswith(head):
            own = found.setdefault(line.removeprefix(head).strip(), {})
    return found


def resources(attributes: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return the resources of a kind: `resources_max`, `resources_available`, `default_chunk`."""
    start = f"{kind}."
    return {
        name.removeprefix(start): value
        for name, value in attributes.items()
        if name.startswith(start)
    }
