"""Errors of templates -> RenderError, with file and line."""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection, Mapping

import jinja2

from hpc_train.errors import RenderError, nearest

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
