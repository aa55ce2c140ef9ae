"""Keys of input files, as a table for the documentation, from the types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as kinds

from hpc_train.model.site import SiteProfile
from hpc_train.model.value import encode_unit

_HEAD = """\
# Site profiles: every key

Each key that a profile may have, in the order of the schema. This page is written by
`hpctrain site schema --markdown`; `hpctrain site schema` prints the same as JSON Schema, for
editors. Lists of mappings are written `partitions[]`, free names `<name>`.

| key | allowed | default | meaning |
|---|---|---|---|
"""
_WORDS = {"int": "whole number", "float": "number", "str": "text", "bool": "true, false"}
_UNITS = {
    "Duration": "duration",
    "Memory": "size",
    "GdrLevel": "`LOC`, `PIX`, `PXB`, `PHB`, `SYS`",
    "Version": "version in quotes",
    "VersionBounds": '`">=2.21,<2.30"`',
    "NodeBounds": '`1`, `">1"`, `">=2,<16"`',
}


def site_reference() -> str:
    """Return the page of all keys of a site profile, in Markdown."""
    return _HEAD + "".join(f"{row}\n" for row in _rows(SiteProfile, ""))


def _rows(kind: type, prefix: str) -> Iterator[str]:
    info = kinds.type_info(kind)
    if not isinstance(info, kinds.StructType):
        raise AssertionError(kind)
    for field in info.fields:
        key = f"{prefix}{field.name}"
        plain, meaning = _bare(field.type)
        inner, ending = _inside(plain)
        if inner is not None and not meaning:
            meaning = _sentence(inner)
        yield f"| `{key}{ending}` | {_allowed(plain)} | {_default(field)} | {_cell(meaning)} |"
        if inner is not None:
            yield from _rows(inner, f"{key}{ending}.")


def _bare(info: kinds.Type) -> tuple[kinds.Type, str]:
    """Return a type without its description and without None, and that description."""
    meaning = ""
    while True:
        if isinstance(info, kinds.Metadata):
            meaning = meaning or str((info.extra_json_schema or {}).get("description", ""))
            info = info.type
        elif isinstance(info, kinds.UnionType):
            rest = [one for one in info.types if not isinstance(one, kinds.NoneType)]
            if len(rest) > 1:
                return kinds.UnionType(tuple(rest)), meaning
            info = rest[0]
        else:
            return info, meaning


def _inside(info: kinds.Type) -> tuple[type | None, str]:
    """Return the struct within a type, and the suffix of its key: `[]`, `.<name>` or none."""
    if isinstance(info, kinds.StructType):
        return info.cls, ""
    item, ending = None, ""
    if isinstance(info, kinds.VarTupleType):
        item, ending = _bare(info.item_type)[0], "[]"
    elif isinstance(info, kinds.DictType):
        item, ending = _bare(info.value_type)[0], ".<name>"
    return (item.cls, ending) if isinstance(item, kinds.StructType) else (None, "")


def _allowed(info: kinds.Type) -> str:
    info = _bare(info)[0]
    match info:
        case kinds.LiteralType():
            words = ", ".join(f"`{value}`" for value in info.values)
        case kinds.UnionType():
            words = " or ".join(dict.fromkeys(map(_allowed, info.types)))
        case kinds.VarTupleType():
            words = f"list: {_allowed(info.item_type)}"
        case kinds.DictType():
            words = f"{_allowed(info.key_type)}: {_allowed(info.value_type)}"
        case kinds.StructType():
            words = "mapping"
        case kinds.CustomType():
            words = _UNITS[info.cls.__name__]
        case kinds.IntType():
            words = _range(info)
        case _:
            words = _WORDS[type(info).__name__.removesuffix("Type").lower()]
    return words


def _range(info: kinds.IntType) -> str:
    if info.ge is None:
        return _WORDS["int"]
    return f"{info.ge} to {info.le}" if info.le is not None else f"{info.ge} or more"


def _default(field: kinds.Field) -> str:
    if field.required:
        return "required"
    value: Any = field.default
    if value is msgspec.NODEFAULT or value is None or isinstance(value, msgspec.Struct):
        return ""
    if value in ((), {}, ""):
        return ""
    text = msgspec.json.encode(value, enc_hook=encode_unit).decode()
    return f"`{text.strip(chr(34))}`"


def _sentence(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
