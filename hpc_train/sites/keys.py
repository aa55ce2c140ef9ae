"""A table of the keys of a profile, from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hpc_train.base.data_folders import schema_file
from hpc_train.sites.profile import SiteProfile

_WORDS = {"integer": "whole number", "string": "text", "boolean": "true, false"}
Schema = dict[str, Any]


def key_rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield key, allowed values, default and meaning; lists are `a[]`, free names `<name>`."""
    kinds = json.loads(schema_file("site").read_bytes())["$defs"]
    yield from _rows(kinds, SiteProfile.__name__, "")


def _rows(kinds: Schema, name: str, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    for key, field in kinds[name]["properties"].items():
        plain = _without_null(field)[0]
        item, ending = plain, ""
        if "items" in plain:
            item, ending = plain["items"], "[]"
        elif "additionalProperties" in plain:
            item, ending = plain["additionalProperties"], ".<name>"
        inner = item.get("$ref", "").rpartition("/")[2]
        whole = f"{prefix}{key}{ending if inner else ''}"
        described = (field, plain, kinds.get(inner, {}))
        meaning = next((one["description"] for one in described if "description" in one), "")
        default = field.get("default")
        if default in (None, [], "") or isinstance(default, dict):
            shown = "required" if key in kinds[name]["x-required"] else ""
        else:
            shown = json.dumps(default).strip('"')
        yield whole, _allowed(field), shown, meaning.partition("\n")[0]
        if inner:
            yield from _rows(kinds, inner, f"{whole}.")


def _without_null(kind: Schema) -> list[Schema]:
    return [one for one in kind.get("anyOf", [kind]) if one.get("type") != "null"]


def _allowed(kind: Schema) -> str:
    if "anyOf" in kind:
        return " or ".join(dict.fromkeys(map(_allowed, _without_null(kind))))
    words = kind.get("enum") or ([*kind["examples"], "…"] if "examples" in kind else [])
    if words:
        return ", ".join(map(str, words))
    if "items" in kind:
        return f"list: {_allowed(kind['items'])}"
    if "additionalProperties" in kind:
        return f"text: {_allowed(kind['additionalProperties'])}"
    if "minimum" in kind:
        least, most = kind["minimum"], kind.get("maximum")
        return f"{least} or more" if most is None else f"{least} to {most}"
    word: str = kind.get("type", "mapping")
    return _WORDS.get(word, word)
