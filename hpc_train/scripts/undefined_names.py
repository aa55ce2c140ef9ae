"""Error message for an unknown name in a template, with the nearest known name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from jinja2.utils import missing

from hpc_train.errors import nearest
from hpc_train.model.value import Value
from hpc_train.scripts.render_state import current


class PlanUndefined(jinja2.StrictUndefined):
    """Stops the rendering when it is used, with the nearest valid name."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint:
            return self._undefined_hint
        values = current.get().values
        if self._undefined_obj is missing:
            known: Sequence[str] = tuple(values)
            return _unknown("variable", self._undefined_name, known)
        owner = _path_of(self._undefined_obj, values)
        known = _words_of(self._undefined_obj)
        return _unknown("field", self._undefined_name, known, owner)


def _unknown(kind: str, name: object, known: Sequence[str], owner: str = "") -> str:
    word = f"{owner}.{name}" if owner else str(name)
    offered = f"; {owner + ' has' if owner else 'there is'}: {', '.join(known)}" if known else ""
    return f"unknown {kind} {word!r}{nearest(str(name), known)}{offered}"


def _path_of(wanted: Any, values: Mapping[str, Value]) -> str:
    """Return the name of a value in templates: `plan.topology`, else the name of its type."""
    for name, value in values.items():
        if value is wanted:
            return name
        for field in value.__struct_fields__:
            if getattr(value, field) is wanted:
                return f"{name}.{field}"
    return type(wanted).__name__


def _words_of(value: Any) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        return tuple(map(str, value))
    if not isinstance(value, Value):
        return ()
    computed = [name for name, part in vars(type(value)).items() if isinstance(part, property)]
    return (*value.__struct_fields__, *computed)
