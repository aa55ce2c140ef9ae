"""What a template may make of texts and lists: it is counted before it fills the memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.visitor import NodeTransformer

from hpc_train.errors import RenderError
from hpc_train.scripts.budget import LARGEST, check_size, current

CONCATENATED, COPIED = "concatenated", "copied"
# An item of a list is a reference.
_ITEM = 8
_OF_TEXT = ("capitalize", "lower", "string", "title", "trim", "truncate", "upper")
_WIDTH = 999


class Counted(NodeTransformer):
    """Lets `a ~ b` and `a[1:]`, which Jinja compiles to plain Python, pass through filters."""

    def __init__(self, environment: jinja2.Environment) -> None:
        self._environment = environment

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """Count the parts before they are put together."""
        self.generic_visit(node)
        return self._filter(nodes.List(node.nodes, lineno=node.lineno), CONCATENATED)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        """Count a slice, which is a copy."""
        self.generic_visit(node)
        return self._filter(node, COPIED) if isinstance(node.arg, nodes.Slice) else node

    def _filter(self, node: nodes.Expr, name: str) -> nodes.Filter:
        made = nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
        made.set_environment(self._environment)
        return made


def written(value: object) -> object:
    """Let nothing into a text that reads `None` or `Topology(nodes=…)`.

    Raises:
        RenderError: the value is neither text nor a number.
    """
    if isinstance(value, (str, int, float, jinja2.Undefined)):
        return value
    raise RenderError(f"a {type(value).__name__} is no text; sh, command or join write one")


def concat(parts: Iterable[object], between: str = "") -> str:
    """Put texts together, each counted while it comes."""
    rendering, texts = current.get(), []
    for part in parts:
        text = str(written(part))
        rendering.make(len(text) + len(between))
        texts.append(text)
    return between.join(texts)


@jinja2.pass_context
def concatenated(_context: Context, parts: list[object]) -> str:
    """Write `a ~ b`."""
    return concat(parts)


@jinja2.pass_context
def copied(_context: Context, value: Any) -> Any:
    """Count a value that was just made."""
    current.get().make(size_of(value))
    return value


@jinja2.pass_context
def join(context: Context, value: Any, d: str = "", attribute: str | int | None = None) -> str:
    """Join texts and numbers, or an attribute of each item."""
    if attribute is not None:
        by = {"attribute": attribute}
        value = context.environment.call_filter("map", value, kwargs=by, context=context)
    return concat(value, str(written(d)))


def size_of(value: object) -> int:
    """Return about how many bytes a text or a list takes; nothing for other values."""
    if isinstance(value, str):
        return len(value)
    return _ITEM * len(value) if isinstance(value, (list, tuple, dict)) else 0


def limited(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter of Jinja's that counts what it makes."""
    first = 1 if hasattr(original, "jinja_pass_arg") else 0
    before = _BEFORE.get(name)

    @functools.wraps(original)
    def counted(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before(*args[first:], **kwargs)
        result = original(*args, **kwargs)
        current.get().make(size_of(result))
        return result

    return counted


def count_method(text: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Count what a method of a text will make, if that is more than the text."""
    for number in (*args, *kwargs.values()):
        # `ljust` and its like.
        check_size(number)
        if name == "expandtabs" and isinstance(number, int):
            current.get().make(len(text) * number)
    if name == "replace":
        replace(text, *args, **kwargs)


def count_operation(operator: str, left: Any, right: Any) -> None:
    """Count what `+`, `*` or `%` will make."""
    if operator == "+":
        current.get().make(size_of(left) + size_of(right))
    elif operator == "%" and isinstance(left, str):
        current.get().make(len(left) + left.count("%") * (_WIDTH + _longest(right)))
    elif operator == "*":
        _count_product(left, right)


def _count_product(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > LARGEST.bit_length() ** 2:
            raise RenderError("a number of that size has no place in a template")
        return
    for one, other in ((left, right), (right, left)):
        if isinstance(one, (str, list, tuple)):
            check_size(len(one) * other)
            current.get().make(size_of(one) * other)


def _longest(values: Any) -> int:
    every = values.values() if isinstance(values, dict) else values
    every = every if isinstance(values, (tuple, dict)) else (values,)
    return max((len(str(written(value))) for value in every), default=0)


def replace(s: object, old: str, new: str, count: int | None = None) -> None:
    """Count what replacing makes; an empty `old` is before each letter."""
    text = str(written(s))
    hits = text.count(str(written(old)))
    if count is not None and count >= 0:
        hits = min(hits, count)
    current.get().make(len(text) + hits * len(str(written(new))))


def _text(s: object, *_args: object, **_kwargs: object) -> None:
    written(s)


def _start(iterable: object, attribute: object = None, start: object = 0) -> None:
    if not isinstance(start, (int, float)):
        raise RenderError(f"sum adds numbers, not to a {type(start).__name__}")


def _keys(value: Any, *_args: object, **_kwargs: object) -> None:
    """To sort without regard to case, Jinja makes a copy of each text."""
    for item in value.items() if isinstance(value, dict) else value:
        parts = item if isinstance(item, (list, tuple)) else (item,)
        current.get().make(_ITEM + sum(map(size_of, parts)))


_BEFORE: dict[str, Callable[..., None]] = {
    **dict.fromkeys(_OF_TEXT, _text),
    **dict.fromkeys(("sort", "dictsort"), _keys),
    "replace": replace,
    "sum": _start,
}
