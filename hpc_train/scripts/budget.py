"""What one rendering may cost: templates end, whatever they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import jinja2
from jinja2 import nodes

from hpc_train.errors import RenderError
from hpc_train.model.value import Value

# A nested study of 100,000 runs, the most that there can be, takes 200,000 turns of loops.
STEPS = 1_000_000
CALL = 20
LARGEST = 1_000_000
CHARACTERS = 64 * 1024 * 1024
TURNS = "turns"


class Rendering:
    """One script on its way: the values it is made of, the templates used, the steps taken."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values
        # In order, each once.
        self.used: dict[str, None] = {}
        # Template and the one that it extends.
        self.extends: set[tuple[str, str]] = set()
        self._steps = 0

    def step(self, price: int = 1) -> None:
        """Count a turn of a loop, or a call or an inclusion, which take longer.

        Raises:
            RenderError: there have been too many.
        """
        self._steps += price
        if self._steps > STEPS:
            raise RenderError(
                f"more than {STEPS} steps: a turn of a loop is one, a call or an inclusion {CALL}"
            )


current: ContextVar[Rendering] = ContextVar("current")


def check_size(number: object) -> None:
    """Refuse a number that would make a text or a list of that length.

    Raises:
        RenderError: the number is too large.
    """
    if isinstance(number, int) and abs(number) > LARGEST:
        raise RenderError(f"a number above {LARGEST} has no place in a template")


def limit_loops(tree: nodes.Template, environment: jinja2.Environment) -> nodes.Template:
    """Return a template whose loops pass through the filter `turns`.

    Raises:
        TemplateSyntaxError: a recursive loop, whose turns cannot be counted.
    """
    for node in tree.find_all((nodes.For, nodes.Import, nodes.FromImport)):
        if isinstance(node, (nodes.Import, nodes.FromImport)):
            # Without its context, Jinja keeps a module, and nobody sees which ones it imports.
            node.with_context = True
        elif isinstance(node, nodes.For):
            _count(node, environment)
    return tree


def _count(loop: nodes.For, environment: jinja2.Environment) -> None:
    if loop.recursive:
        raise jinja2.TemplateSyntaxError("a loop cannot be recursive here", loop.lineno)
    loop.iter = nodes.Filter(loop.iter, TURNS, [], [], None, None, lineno=loop.lineno)
    loop.iter.set_environment(environment)


@jinja2.pass_context
def turns(_context: object, items: Any) -> Iterator[Any]:
    """Yield the items of a loop, each at the price of one step."""
    rendering = current.get()
    for item in items:
        rendering.step()
        yield item
