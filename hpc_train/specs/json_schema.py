"""JSON Schema of input files, for editors."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from hpc_train.model.job import JobSpec
from hpc_train.model.site import SiteProfile
from hpc_train.model.study import StudySpec
from hpc_train.model.units import Duration, Memory
from hpc_train.model.versions import DISTANCES, GdrLevel, NodeBounds, Version, VersionBounds

Kind = Literal["job", "study", "site"]
_TYPES: dict[Kind, type] = {"job": JobSpec, "study": StudySpec, "site": SiteProfile}
# Names that a loader adds, so that an editor must not require them.
_FILLED: dict[Kind, tuple[str, ...]] = {"job": ("name",), "study": ("name",), "site": ()}


def json_schema(kind: Kind) -> bytes:
    """Return the schema of a job, study or site file as JSON text."""
    schema = msgspec.json.schema(_TYPES[kind], schema_hook=_unit_schema)
    own = schema["$defs"][_TYPES[kind].__name__]
    own["required"] = [key for key in own["required"] if key not in _FILLED[kind]]
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return msgspec.json.format(msgspec.json.encode(schema), indent=2)


def _unit_schema(kind: type) -> dict[str, Any]:
    if kind is GdrLevel:
        return {"enum": list(DISTANCES)}
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
