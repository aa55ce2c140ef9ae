"""Store the JSON Schemas of job, study, defaults and site files: `make man` runs this."""

from __future__ import annotations

import json
import sys
from inspect import cleandoc
from pathlib import Path
from typing import Any, get_args

import msgspec

from hpc_train.base.data_folders import FileKind, schema_file
from hpc_train.base.values import Duration, Memory, NodeBounds, Version
from hpc_train.jobs.job import Defaults, JobSpec
from hpc_train.jobs.study import StudySpec
from hpc_train.sites.profile import SiteProfile

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
_EXAMPLES: dict[type, list[str]] = {
    Duration: ["1h30m", "01:30:00"],
    Memory: ["480G", "4000M"],
    Version: ["2.21.5"],
    NodeBounds: ["1", ">1"],
}


def json_schema(kind: FileKind) -> str:
    """Return the schema of such files as JSON text."""
    schema = msgspec.json.schema(_TYPES[kind], schema_hook=_unit_schema)
    own = schema["$defs"][_TYPES[kind].__name__]
    own["required"] = [key for key in own.get("required", ()) if key != _FILLED.get(kind)]
    for (name, key), other in _ALSO.items():
        if name in schema["$defs"]:
            keys = schema["$defs"][name]["properties"]
            kept = {k: keys[key].pop(k) for k in ("description", "default") if k in keys[key]}
            keys[key] = {**kept, "anyOf": [other, *keys[key].get("anyOf", [keys[key]])]}
    if kind == "site":
        _extending(schema["$defs"])
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    for own in schema["$defs"].values():
        # Some versions of msgspec keep the indents of docstrings.
        for part in (own, *own.get("properties", {}).values()):
            if "description" in part:
                part["description"] = cleandoc(part["description"])
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":")) + "\n"


def _extending(classes: dict[str, Any]) -> None:
    """Require nothing that a profile may take from the one it extends; null removes a value."""
    for name, own in classes.items():
        own["x-required"] = own.get("required", [])
        own["required"] = ["schema", "name"] if name == SiteProfile.__name__ else []
        for key, value in own.get("properties", {}).items():
            kept = {k: value.pop(k) for k in ("description", "default") if k in value}
            kinds = [one for one in value.get("anyOf", [value]) if one != {"type": "null"}]
            own["properties"][key] = {**kept, "anyOf": [*kinds, {"type": "null"}]}


def _unit_schema(kind: type) -> dict[str, Any]:
    types = ["string", "integer"] if kind is NodeBounds else "string"
    return {"type": types, "examples": _EXAMPLES[kind]}


def store(folder: Path | None = None) -> None:
    """Write the schemas into the package's data, or into another folder."""
    for kind in get_args(FileKind):
        path = schema_file(kind)
        (folder / path.name if folder else path).write_text(json_schema(kind), encoding="utf-8")


if __name__ == "__main__":
    store(Path(sys.argv[1]) if sys.argv[1:] else None)
