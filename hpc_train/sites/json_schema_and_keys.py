"""Keys of input files: JSON Schema for editors, and a table of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, Literal

import msgspec
from msgspec import inspect as kinds

from hpc_train.base.units import Duration, Memory
from hpc_train.base.value import NodeBounds, Version, VersionBounds, encode_unit
from hpc_train.jobs.job import Defaults, JobSpec
from hpc_train.jobs.study import StudySpec
from hpc_train.sites.profile import SiteProfile

FileKind = Literal["job", "study", "site", "defaults"]
_TYPES: dict[FileKind, type] = {
    "job": JobSpec,
    "study": StudySpec,
    "site": SiteProfile,
    "defaults": Defaults,
}
# Names that a loader adds, so that an editor must not require them.
_FILLED: dict[FileKind, str] = {"job": "name", "study": "name"}
# What a job file may also say in another type than its value has: (class, key) -> schema.
_ALSO: dict[tuple[str, str], dict[str, Any]] = {
    ("JobSpec", "command"): {"type": "string", "examples": ["python train.py --epochs 5"]},
    ("Resources", "time"): {"type": "integer", "minimum": 1, "description": "Minutes."},
    ("Resources", "mem"): {"type": "integer", "minimum": 1, "description": "MB."},
}


def json_schema(kind: FileKind) -> bytes:
    """Return the schema of a job, study or site file as JSON text."""
    schema = msgspec.json.schema(_TYPES[kind], schema_hook=_unit_schema)
    own = schema["$defs"][_TYPES[kind].__name__]
    own["required"] = [key for key in own.get("required", ()) if key != _FILLED.get(kind)]
    for (name, key), other in _ALSO.items():
        if name in schema["$defs"]:
            keys = schema["$defs"][name]["properties"]
            kept = {k: keys[key].pop(k) for k in ("description", "default") if k in keys[key]}
            keys[key] = {**kept, "anyOf": [other, *keys[key].get("anyOf", [keys[key]])]}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    for own in schema["$defs"].values():
        # Some versions of msgspec keep the indents of docstrings.
        for part in (own, *own.get("properties", {}).values()):
            if "description" in part:
                part["description"] = cleandoc(part["description"])
    return json.dumps(schema, indent=2, ensure_ascii=False).encode()


def _unit_schema(kind: type) -> dict[str, Any]:
    examples = {
        Duration: ["1h30m", "01:30:00"],
        Memory: ["480G", "4000M"],
        Version: ["2.21.5"],
        VersionBounds: [">=2.21,<2.30"],
        NodeBounds: ["1", ">1"],
    }
    if kind not in examples:
        raise NotImplementedError(kind)
    types = ["string", "integer"] if kind is NodeBounds else "string"
    return {"type": types, "examples": examples[kind]}


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
