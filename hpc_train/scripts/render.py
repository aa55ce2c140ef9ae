"""render_script, render_allocation: a plan and a template -> the bytes that are submitted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from hpc_train.base.data_folders import template_folder
from hpc_train.base.errors import RenderError
from hpc_train.base.value import Value
from hpc_train.plans.plan import Allocation, LaunchPlan, Setting
from hpc_train.runs.run import Script
from hpc_train.scripts.errors import WRONG, explain
from hpc_train.scripts.jinja_environment import TemplateEnvironment
from hpc_train.scripts.template_loader import Rendering, TemplateLoader, current
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
    token = current.set(rendering)
    try:
        found = environment.get_template(environment.templates.reference(template.value))
        text = found.render(rendering.values)
    except WRONG as failure:
        words = {"filter": environment.filters, "test": environment.tests}
        paths = environment.templates.paths()
        raise explain(failure, paths, words, template.origin) from None
    finally:
        current.reset(token)
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
