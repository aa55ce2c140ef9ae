"""render_script, render_allocation: a plan and a template -> the bytes that are submitted."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import jinja2

from hpc_train.assets import template_folder
from hpc_train.errors import RenderError
from hpc_train.model.plan import Allocation, LaunchPlan
from hpc_train.model.script import Script
from hpc_train.model.value import Value
from hpc_train.scripts import filters


def render_script(plan: LaunchPlan) -> Script:
    """Render a plan; the same plan and templates give the same bytes.

    Raises:
        RenderError: a template has an error or an unknown variable (template:line), or a value
            cannot be written.
    """
    return _render(plan.template, plan=plan)


def render_allocation(allocation: Allocation) -> Script:
    """Render the script of a shared allocation: `sbatch FILE HOME`, with the runs below HOME.

    Raises:
        RenderError: as for `render_script`.
    """
    return _render("nested.sbatch.j2", allocation=allocation)


def _render(template: str, **values: Value) -> Script:
    folder = template_folder()
    try:
        text = _environment(folder).get_template(template).render(values)
    except jinja2.TemplateSyntaxError as failure:
        raise RenderError(f"{failure.name}:{failure.lineno}: {failure.message}") from None
    except jinja2.TemplateError as failure:
        raise RenderError(f"{template}: {failure}") from None
    return Script(
        text=text,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        template_digest=_template_digest(folder),
    )


@lru_cache(maxsize=4)
def _environment(folder: Path) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - shell, not HTML; values go through the shell filters
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Nobody edits a template between two scripts of a study.
        auto_reload=False,
    )
    for name in ("sh", "line", "token", "required", "directive", "command"):
        environment.filters[name] = getattr(filters, name)
    return environment


@lru_cache(maxsize=4)
def _template_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.j2")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
