"""render_script, render_allocation: a plan and a template -> the bytes that are submitted.

Templates have no access to files or to Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, MutableMapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.filters import FILTERS
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hpc_train.base.data_folders import template_folder
from hpc_train.base.errors import RenderError
from hpc_train.base.value import Value
from hpc_train.plans.plan import Allocation, LaunchPlan, Setting
from hpc_train.runs.run import Script
from hpc_train.scripts import quote_filters
from hpc_train.scripts.errors import WRONG, PlanUndefined, explain
from hpc_train.scripts.quote_filters import WIDTH, note, sh, token
from hpc_train.scripts.template_loader import Rendering, TemplateLoader, beside, current
from hpc_train.sites.batch_system import find_batch_system

ALLOCATION = "nested.sbatch.j2"
# What the templates of all schedulers extend; it has the plain form.
_JOB = "job.sh.j2"


def render_script(plan: LaunchPlan, folders: Sequence[Path] = ()) -> Script:
    """Render a plan; the same plan and templates give the same bytes.

    `folders`: the site's templates, which take precedence over those of the package.

    Raises:
        RenderError: a template has an error or an unknown variable (template:line), or a value
            cannot be written; the site's template has no plain form.
    """
    named = plan.settings.get("template") or Setting(value=plan.template, origin="")
    batch = find_batch_system(plan.scheduler)
    script = _render(named, folders, plan=plan, batch=batch)
    if plan.plain and _JOB not in (file.name for file in script.templates):
        raise RenderError(
            f"{named.origin}: the template {named.value} is a whole script without a plain form",
            f"leave --plain out, or extend {batch.template}",
        )
    return script


def render_allocation(allocation: Allocation, folders: Sequence[Path] = ()) -> Script:
    """Render the script of a shared allocation: `sbatch FILE HOME`, with the runs below HOME.

    Raises:
        RenderError: as for `render_script`.
    """
    return _render(Setting(value=ALLOCATION, origin=""), folders, allocation=allocation)


def _render(template: Setting, folders: Sequence[Path], **values: Value) -> Script:
    # A relative folder depends on the current folder.
    places = tuple(folder.absolute() for folder in folders)
    environment = _environment((*folders, template_folder()), places)
    rendering = Rendering(values)
    before = current.set(rendering)
    try:
        found = environment.get_template(environment.templates.reference(template.value))
        text = found.render(rendering.values)
    except WRONG as failure:
        words = {"filter": environment.filters, "test": environment.tests}
        paths = environment.templates.paths()
        raise explain(failure, paths, words, template.origin) from None
    finally:
        current.reset(before)
    files = tuple(map(environment.templates.file, rendering.used))
    used = hashlib.sha256("".join(f"{file.name}\0{file.digest}" for file in files).encode())
    beside = tuple(sorted(rendering.beside.items()))
    bytes_ = "\0".join((text, *(part for pair in beside for part in pair))).encode()
    return Script(
        text=text,
        digest=hashlib.sha256(bytes_).hexdigest(),
        template_digest=used.hexdigest(),
        templates=files,
        beside=beside,
    )


@lru_cache(maxsize=4)
def _environment(folders: tuple[Path, ...], _places: tuple[Path, ...]) -> TemplateEnvironment:
    return TemplateEnvironment(TemplateLoader(folders))


OURS = (
    *("sh", "token", "required", "directive", "quoted_directive", "command", "comment"),
    "note",
)
# Excluded: filters that escape for HTML (`e`), are random, pad, or read attributes by name.
OF_JINJA = (
    "abs capitalize count d default dictsort first float groupby int items join last length list "
    "lower map max min reject rejectattr replace reverse select selectattr sort string sum title "
    "trim truncate unique upper"
).split()


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Renders shell scripts from the templates of a loader, and records the templates used."""

    def __init__(self, loader: TemplateLoader) -> None:
        super().__init__(
            loader=loader,
            undefined=PlanUndefined,
            # The output is shell, not HTML; values are quoted by the shell quote_filters.
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            finalize=_written,
        )
        self.templates = loader
        self.globals = {name: self.globals[name] for name in ("range", "dict", "namespace")}
        self.filters = {name: FILTERS[name] for name in OF_JINJA}
        self.filters.update({name: getattr(quote_filters, name) for name in OURS})
        self.filters.update(exports=exports, beside=beside)

    def join_path(self, template: str, parent: str) -> str:
        """Return the template that `parent` refers to by a name."""
        return self.templates.reference(template, parent)

    def text_of(self, name: str) -> str:
        """Return the text of a file that is no template, and record its use."""
        found = self.templates.reference(name)
        current.get().used[found] = None
        return self.templates.get_source(self, found)[0]

    def get_template(
        self,
        name: str | jinja2.Template,
        parent: str | None = None,
        globals: MutableMapping[str, Any] | None = None,
    ) -> jinja2.Template:
        """Return a template, and record its use."""
        found = super().get_template(name, parent, globals)
        current.get().used[str(found.name)] = None
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
        """Allow the fields of values, whatever their types."""
        if isinstance(obj, Value):
            return not attr.startswith("_")
        return super().is_safe_attribute(obj, attr, value)


def _written(value: object) -> object:
    """Refuse values that would be written as `None` or `Topology(nodes=…)`."""
    if isinstance(value, (str, int, float, jinja2.Undefined)):
        return value
    raise RenderError(f"a {type(value).__name__} is not text; use sh, command or join")


_PREFIX = "export "
_LONGEST_NOTE = 140


def exports(plan: LaunchPlan, *, notes: bool = True) -> str:
    """Write the exports of a plan; with `notes`, each line ends with origins and reasons."""
    lines = []
    for group in _groups(plan):
        assigned = " ".join(assignment for assignment, _ in group)
        lines.append(f"{_PREFIX}{assigned}{note(_reasons(group)) if notes else ''}\n")
    return "".join(lines)


_Group = list[tuple[str, Setting]]


def _groups(plan: LaunchPlan) -> Iterator[_Group]:
    """Variables that one file or the rules set share a line."""
    group: _Group = []
    for name, value in plan.env:
        quoted = sh(value) if isinstance(value, str) else token(value)
        one = (f"{name}={quoted}", plan.settings[f"env.{name}"])
        if group and not _fits([*group, one]):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _fits(group: _Group) -> bool:
    (_, first), (_, last) = group[0], group[-1]
    width = sum(len(assignment) + 1 for assignment, _ in group) + len(_PREFIX)
    # What a job sets has no reason beside its line.
    same = bool(first.why and last.why) and _file(first.origin) == _file(last.origin)
    return same and width <= WIDTH and len(note(_reasons(group))) <= _LONGEST_NOTE


def _file(origin: str) -> str:
    """Return an origin without the number of its line."""
    file, _, line = origin.rpartition(":")
    return file if line.isdigit() else origin


def _reasons(group: _Group) -> Setting:
    """Return a setting with the origins and reasons of several: `site.yaml:3-5`."""
    settings = [setting for _, setting in group]
    origin = settings[0].origin
    if any(one.origin != origin for one in settings):
        lines = sorted(int(one.origin.rpartition(":")[2]) for one in settings)
        origin = f"{_file(origin)}:{lines[0]}-{lines[-1]}"
    why = "; ".join(dict.fromkeys(one.why for one in settings if one.why))
    return Setting(value=None, origin=origin, why=why)
