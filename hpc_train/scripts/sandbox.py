"""The Jinja environment of templates: no access to files or Python, and limited steps."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from types import BuiltinMethodType
from typing import Any

import jinja2
from jinja2.filters import FILTERS
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hpc_train.errors import RenderError
from hpc_train.model.value import Value
from hpc_train.scripts import filters
from hpc_train.scripts.blocks import EXTENDED, extended
from hpc_train.scripts.budget import CALL, TURNS, check_size, current, turns
from hpc_train.scripts.loader import TemplateLoader
from hpc_train.scripts.undefined import PlanUndefined

OURS = ("sh", "line", "token", "required", "directive", "command", "comment", "note")
# Excluded: filters that escape for HTML (`e`), are random, pad, or read attributes by name.
OF_JINJA = (
    "abs capitalize count d default dictsort first float groupby int items join last length list "
    "lower map max min reject rejectattr replace reverse select selectattr sort string sum title "
    "trim truncate unique upper"
).split()
# Names that the loader inserts into templates.
HIDDEN = {TURNS: turns, EXTENDED: extended}
_WIDE = re.compile(r"%[^A-Za-z%]*(?:\d{4}|\*)")


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Renders shell scripts from the templates of a loader, and records the templates used."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, loader: TemplateLoader) -> None:
        super().__init__(
            loader=loader,
            undefined=PlanUndefined,
            # The output is shell, not HTML; values are quoted by the shell filters.
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            finalize=_written,
        )
        self.templates = loader
        self.globals = {name: self.globals[name] for name in ("range", "dict", "namespace")}
        self.filters = {name: FILTERS[name] for name in OF_JINJA}
        self.filters.update({name: getattr(filters, name) for name in OURS}, **HIDDEN)

    def join_path(self, template: str, parent: str) -> str:
        """Return the template that `parent` refers to by a name."""
        return self.templates.reference(template, parent)

    def get_template(
        self,
        name: str | jinja2.Template,
        parent: str | None = None,
        globals: MutableMapping[str, Any] | None = None,
    ) -> jinja2.Template:
        """Return a template, and record its use."""
        found = super().get_template(name, parent, globals)
        rendering = current.get()
        rendering.step(CALL)
        rendering.used[str(found.name)] = None
        return found

    def select_template(
        self,
        names: Any,
        parent: str | None = None,
        globals: MutableMapping[str, Any] | None = None,
    ) -> jinja2.Template:
        """Return the first of several templates that exists."""
        *others, last = names
        for name in others:
            try:
                return self.get_template(name, parent, globals)
            except jinja2.TemplateNotFound:
                continue
        return self.get_template(last, parent, globals)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Also refuse `str.format`, which reads attributes itself and pads without limit."""
        if isinstance(obj, Value):
            return not attr.startswith("_")
        return attr not in ("format", "format_map") and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:
        """Return None, because `is_safe_attribute` refuses `str.format`."""

    def call(
        __self,
        __context: Any,
        __obj: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Call a macro or a method, at the price of one step."""
        current.get().step(CALL)
        # `ljust` and its like.
        for number in args if isinstance(__obj, BuiltinMethodType) else ():
            check_size(number)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiply and format, but nothing that would fill the memory."""
        if operator == "**":
            raise RenderError("a template cannot raise to a power")
        if operator == "%" and isinstance(left, str) and _WIDE.search(left):
            raise RenderError("a width above 999 has no place in a template")
        if operator == "*":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, (str, list, tuple)):
                    check_size(len(one) * other)
        return super().call_binop(context, operator, left, right)


def _written(value: object) -> object:
    """Refuse values that would be written as `None` or `Topology(nodes=…)`."""
    if isinstance(value, (str, int, float, jinja2.Undefined)):
        return value
    raise RenderError(f"a {type(value).__name__} is not text; use sh, command or join")
