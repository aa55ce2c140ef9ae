"""A table of the keys of input files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as kinds

from hpc_train.base.value import encode_unit
from hpc_train.sites.profile import SiteProfile

_WORDS = {"int": "whole number", "float": "number", "str": "text", "bool": "true, false"}
_UNITS = {
    "Duration": "duration",
    "Memory": "size",
    "Version": "version in quotes",
    "VersionBounds": '">=2.21,<2.30"',
    "NodeBounds": '1, ">1", ">=2,<16"',
}


def key_rows(kind: type = SiteProfile, prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield key, allowed values, default and meaning; lists are `a[]`, free names `<name>`."""
    info = kinds.type_info(kind)
    if not isinstance(info, kinds.StructType):
        raise AssertionError(kind)
    for field in info.fields:
        key = f"{prefix}{field.name}"
        plain, meaning = _bare(field.type)
        inner, ending = _inside(plain)
        if inner is not None and not meaning:
            meaning = (inner.__doc__ or "").partition("\n")[0]
        yield key + ending, _allowed(plain), _default(field), meaning
        if inner is not None:
            yield from key_rows(inner, f"{key}{ending}.")


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
    match info := _bare(info)[0]:
        case kinds.LiteralType():
            words = ", ".join(map(str, info.values))
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
        case kinds.IntType(ge=int()):
            words = f"{info.ge} or more" if info.le is None else f"{info.ge} to {info.le}"
        case _:
            words = _WORDS[type(info).__name__.removesuffix("Type").lower()]
    return words


def _default(field: kinds.Field) -> str:
    if field.required:
        return "required"
    value: Any = field.default
    if value in (msgspec.NODEFAULT, None, (), {}, "") or isinstance(value, msgspec.Struct):
        return ""
    return msgspec.json.encode(value, enc_hook=encode_unit).decode().strip('"')
