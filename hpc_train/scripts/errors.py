"""Errors of templates: unknown names with the nearest known one; file and line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jinja2
from jinja2.utils import missing

from hpc_train.base.errors import RenderError, nearest
from hpc_train.base.value import Value
from hpc_train.scripts.template_loader import current

# Exceptions of expressions in a template, for example the sum of a number and a text.
WRONG = (
    RenderError,
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_NO_SUCH = re.compile(r"No (?P<kind>filter|test) named '(?P<name>[^']*)'")


def explain(
    failure: BaseException,
    paths: Collection[str],
    words: Mapping[str, Collection[str]],
    origin: str,
) -> RenderError:
    """Return the error with its place: the line of the innermost template, else `origin`.

    `paths`: the loaded templates; `words`: the names of every `filter` and `test`.
    """
    text = _text(failure, words)
    hint = failure.hint if isinstance(failure, RenderError) else ""
    place = _place(failure, paths) or origin
    return RenderError(f"{place}: {text}" if place else text, hint)


def _place(failure: BaseException, paths: Collection[str]) -> str:
    if isinstance(failure, jinja2.TemplateSyntaxError):
        return f"{failure.filename or failure.name}:{failure.lineno}"
    # Only a failure needs it.
    import traceback

    place = ""
    # Jinja has put the lines of the templates into the traceback.
    for frame, line in traceback.walk_tb(failure.__traceback__):
        if frame.f_code.co_filename in paths:
            place = f"{frame.f_code.co_filename}:{line}"
    return place


def _text(failure: BaseException, words: Mapping[str, Collection[str]]) -> str:
    if isinstance(failure, RecursionError):
        return "templates or macros that call one another recursively"
    text = str(getattr(failure, "message", None) or failure)
    match = _NO_SUCH.search(text)
    if match is None:
        return text.rstrip(".")
    known = words[match["kind"]]
    near = nearest(match["name"], known)
    return f"unknown {match['kind']} {match['name']!r}{near}; allowed: {', '.join(sorted(known))}"


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
