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
from hpc_train.scripts.template_blocks import EXTENDED, Rendering, check_blocks, current
from hpc_train.scripts.template_loader import TemplateLoader
from hpc_train.sites.batch_system import find_batch_system

ALLOCATION = "nested.sbatch.j2"
_WHOLE = dict.fromkeys(("slurm.sbatch.j2", "pbs.sh.j2", "local.sh.j2"), "plain.sbatch.j2")
_PARTS = {f"_{part}.sh.j2": f"_plain_{part}.sh.j2" for part in ("agent", "container")}
_PLAIN = {**_WHOLE, **_PARTS}


def render_script(plan: LaunchPlan, folders: Sequence[Path] = (), *, plain: bool = False) -> Script:
    """Render a plan; the same plan and templates give the same bytes.

    `folders`: the site's templates, which take precedence over those of the package. A `plain`
    script does not track its run; its plan was made as `plain` too.

    Raises:
        RenderError: a template has an error or an unknown variable (template:line), or a value
            cannot be written; the site's template has no plain form.
    """
    named = plan.settings.get("template") or Setting(value=plan.template, origin="")
    batch = find_batch_system(plan.scheduler)
    script = _render(named, (folders, plain), plan=plan, batch=batch)
    if plain and not any(Path(file.path).name in _WHOLE.values() for file in script.templates):
        raise RenderError(
            f"{named.origin}: the template {named.value} is a whole script without a plain form",
            f"leave --plain out, or extend {' or '.join(_WHOLE)}",
        )
    return script


def render_allocation(allocation: Allocation, folders: Sequence[Path] = ()) -> Script:
    """Render the script of a shared allocation: `sbatch FILE HOME`, with the runs below HOME.

    Raises:
        RenderError: as for `render_script`.
    """
    return _render(Setting(value=ALLOCATION, origin=""), (folders, False), allocation=allocation)


def _render(template: Setting, search: tuple[Sequence[Path], bool], **values: Value) -> Script:
    folders, plain = search
    # A relative folder depends on the current folder.
    places = tuple(folder.absolute() for folder in folders)
    environment = _environment((*folders, template_folder()), places, plain)
    rendering = Rendering(values)
    token = current.set(rendering)
    try:
        text = _text(environment, template.value)
    except WRONG as failure:
        words = {"filter": environment.filters.keys() - {EXTENDED}, "test": environment.tests}
        paths = environment.templates.paths()
        raise explain(failure, paths, words, template.origin) from None
    finally:
        current.reset(token)
    files = tuple(map(environment.templates.file, rendering.used))
    used = hashlib.sha256("".join(f"{file.name}\0{file.digest}" for file in files).encode())
    return Script(
        text=text,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        template_digest=used.hexdigest(),
        templates=files,
    )


def _text(environment: TemplateEnvironment, template: str) -> str:
    found = environment.get_template(environment.templates.reference(template))
    text = found.render(current.get().values)
    check_blocks(current.get().extends, environment.templates.blocks)
    return text


@lru_cache(maxsize=4)
def _environment(
    folders: tuple[Path, ...], _places: tuple[Path, ...], plain: bool
) -> TemplateEnvironment:
    return TemplateEnvironment(TemplateLoader(folders, _PLAIN if plain else {}))
