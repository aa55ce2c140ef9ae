"""render_script, render_allocation: a plan and a template -> the bytes that are submitted.

Templates have no access to files or to Python.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.filters import FILTERS
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from hpc_train.base.data_folders import template_folder
from hpc_train.base.errors import RenderError, nearest
from hpc_train.base.slurm_options import DIRECTIVE_VALUE
from hpc_train.base.values import Value
from hpc_train.plans.plan import (
    Allocation,
    FirstOf,
    JobVar,
    JobWords,
    Joined,
    LaunchPlan,
    Setting,
    Text,
    Token,
)
from hpc_train.runs.run import Script
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
            # The output is shell, not HTML; values are quoted by the filters for the shell.
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            finalize=_written,
        )
        self.templates = loader
        self.globals = {name: self.globals[name] for name in ("range", "dict", "namespace")}
        self.filters = {name: FILTERS[name] for name in OF_JINJA}
        self.filters.update({name: globals()[name] for name in OURS})
        self.filters.update(exports=exports, beside=beside)

    def join_path(self, template: str, parent: str) -> str:
        """Return the template that `parent` refers to by a name."""
        return self.templates.reference(template, parent)

    def text_of(self, name: str) -> str:
        """Return the text of a file that is no template, and record its use."""
        found = self.templates.reference(name)
        current.get().used[found] = None
        return self.templates.get_source(self, found)[0]

    def _load_template(
        self, name: str, globals: MutableMapping[str, Any] | None
    ) -> jinja2.Template:
        """Return a template, and record its use."""
        current.get().used[name] = None
        return super()._load_template(name, globals)

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


WIDTH = 96
# Their first option stays beside them.
_PROGRAMS = ("bash", "sh", "python")


def sh(value: str | int | float) -> str:
    """Quote literal text for any shell; `==` after a name would look like a comparison.

    Each further line begins with two quotes, because a word on its own line could end a
    here-document.

    Raises:
        RenderError: neither text nor a number, such as a missing field of the plan.
    """
    if not isinstance(value, (str, int, float)):
        raise RenderError(f"sh quotes text, not {value!r}")
    quoted = shlex.quote(str(value)).replace("\n", "\n''")
    return f"'{quoted}'" if quoted.startswith("=") else quoted


def token(value: Token) -> str:
    """Write a literal quoted, job variables as quoted expansions.

    Raises:
        RenderError: not an argument of the launch command.
    """
    if isinstance(value, Joined):
        return "".join(token(part) for part in value.parts)
    if isinstance(value, FirstOf):
        return _first(value, "")
    if isinstance(value, JobWords):
        return f'"${{{value.name}[@]}}"'
    if not isinstance(value, (Text, JobVar)):
        raise RenderError(f"token and command write the arguments of plan.launch, not {value!r}")
    return sh(value.text) if isinstance(value, Text) else f'"${value.name}"'


def required(value: Token) -> str:
    """Like `token`, but a variable that the launcher did not set ends the rank with a message."""
    if isinstance(value, FirstOf):
        return _first(value, ":?the launcher did not set it")
    if isinstance(value, JobVar):
        return f'"${{{value.name}:?the launcher did not set it}}"'
    return token(value)


def _first(value: FirstOf, otherwise: str) -> str:
    *others, last = value.names
    expansion = f"${{{last}{otherwise or ':-'}}}"
    for name in reversed(others):
        expansion = f"${{{name}:-{expansion}}}"
    return f'"{expansion}"'


def directive(value: str) -> str:
    """Check a value of an sbatch option, to which the shell's quoting rules do not apply.

    Raises:
        RenderError: a blank, a quote or a line break, which could become another option.
    """
    if not DIRECTIVE_VALUE.fullmatch(value):
        raise RenderError(f"{value!r} cannot be written as an #SBATCH value")
    return value


def quoted_directive(value: str) -> str:
    """Write a value of an #SBATCH line that may contain blanks, as sbatch reads quotes."""
    if DIRECTIVE_VALUE.fullmatch(value):
        return value
    return '"' + comment(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def command(tokens: Sequence[Token], before: str = "") -> str:
    """Write argv over several lines, each ended by a backslash, broken before options and programs.

    An option stays on the line of its value, and `bash` on that of its `-c`. The first line
    begins with the words `before`.
    """
    lines = [before] if before else []
    for words in _unbroken(tokens):
        if lines and len(lines[-1]) + len(words) < WIDTH:
            lines[-1] += f" {words}"
        else:
            lines.append(words)
    return " \\\n  ".join(lines)


def _unbroken(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the words that share a line."""
    words: list[str] = []
    for item in tokens:
        word = token(item)
        first_option = bool(words) and words[-1] in _PROGRAMS
        if words and (word in _PROGRAMS or (word.startswith("-") and not first_option)):
            yield " ".join(words)
            words = []
        words.append(word)
    if words:
        yield " ".join(words)


def comment(text: str) -> str:
    """Keep a comment on one line: a file name may contain a line break."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def note(setting: Setting) -> str:
    """Write the comment of an export: origin of the value, and reason."""
    return comment("  # " + ": ".join(filter(None, (setting.origin, setting.why))))


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
