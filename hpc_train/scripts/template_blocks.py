"""Blocks of templates that extend another, and the state of the rendering in progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, cast

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context

from hpc_train.base.errors import nearest
from hpc_train.base.value import Value


class Rendering:
    """One script on its way."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values
        # In order, each once.
        self.used: dict[str, None] = {}
        # Files that the script needs beside it: name and text.
        self.beside: dict[str, str] = {}
        # Template and the one that it extends.
        self.extends: set[tuple[str, str]] = set()


current: ContextVar[Rendering] = ContextVar("current")


EXTENDED = "extended"


class Blocks(Value, frozen=True, kw_only=True):
    """Blocks of one template; `outer` are not inside another, each with its line."""

    path: str
    names: frozenset[str]
    outer: dict[str, int]


def read_blocks(tree: nodes.Template, path: str) -> Blocks:
    """Return the blocks of a template."""
    names = frozenset(block.name for block in tree.find_all(nodes.Block))
    return Blocks(path=path, names=names, outer=dict(_outer(tree)))


def _outer(node: nodes.Node) -> Iterator[tuple[str, int]]:
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.Block):
            yield child.name, child.lineno
        else:
            yield from _outer(child)


def note_ancestors(
    tree: nodes.Template, reference: str, environment: jinja2.Environment
) -> nodes.Template:
    """Return a template that records which template it extends, which may depend on the plan."""
    for node in tree.find_all(nodes.Extends):
        child = nodes.Const(reference, lineno=node.lineno)
        node.template = nodes.Filter(
            node.template, EXTENDED, [child], [], None, None, lineno=node.lineno
        )
        node.template.set_environment(environment)
    return tree


# With the context, because Jinja evaluates other filters of constants at compile time.
@jinja2.pass_context
def extended(context: Context, name: str, child: str) -> str:
    """Record that `child` extends a template, and return its name."""
    current.get().extends.add((child, context.environment.join_path(name, child)))
    return name


@jinja2.pass_context
def beside(context: Context, name: str) -> str:
    """Record that the script needs a file of the template folders beside it; return its name."""
    current.get().beside[name] = cast(Any, context.environment).text_of(name)
    return name


def check_blocks(extends: Iterable[tuple[str, str]], known: Mapping[str, Blocks]) -> None:
    """Refuse blocks that Jinja would silently ignore.

    Raises:
        TemplateSyntaxError: no ancestor has the block.
    """
    pairs = sorted(extends)
    for child in sorted({child for child, _ in pairs}):
        blocks = known[child]
        allowed = frozenset[str]().union(*(known[one].names for one in _ancestors(child, pairs)))
        for name, line in blocks.outer.items():
            if name not in allowed:
                raise jinja2.TemplateSyntaxError(
                    f"unknown block {name!r}{nearest(name, allowed)}; "
                    f"allowed: {', '.join(sorted(allowed)) or 'none'}",
                    line,
                    child,
                    blocks.path,
                )


def _ancestors(child: str, pairs: Iterable[tuple[str, str]]) -> set[str]:
    found: set[str] = set()
    news = {child}
    while news:
        news = {parent for one, parent in pairs if one in news} - found
        found |= news
    return found
