"""What a script asks for: its options, and the resources that follow from them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from hpc_train.base.decode import load_data
from hpc_train.base.shell import Word
from hpc_train.base.slurm_options import KINDS, Grammar, gres, plugin_options
from hpc_train.base.values import Value

if TYPE_CHECKING:
    from hpc_train.sites.profile import SiteProfile

_FORMS = (
    r"<[^<>]{1,80}>",
    r"\{\{.{0,80}?\}\}",
    r"\{%.{0,80}?%\}",
    r"\[\[?[A-Za-z][A-Za-z _-]{0,80}\]?\]",
    r"@[A-Za-z_]\w{0,80}@",
    r"%[A-Za-z_]\w{2,80}%",
    r"(?<!\$)\{[A-Za-z_]\w{0,80}\}",
    r"(?i:(?:\bd{1,2}-)?\bh{1,3}:mm(?::ss)?\b)",
    r"(?i:\b(?:your|my|enter|insert|put)[-_ ]\w[\w.-]{0,80})",
    r"\b(?:CHANGE_?ME|REPLACE_?ME|FIX_?ME|TODO|TBD|FILL_?IN|PLACEHOLDER)\b",
    r"^(?:\d{1,6}-)?(?:N{1,2}|X{1,2}|NUM(?:_\w{1,20})?|n_\w{1,20})[KMGT]?$",
    r"\bX{3,80}\b|\bx{3,80}\b|\*{3,80}|\.{3,80}|…|\?{2,80}",
)
_PLACEHOLDER = re.compile("|".join(_FORMS))
# These may contain blanks, at which sbatch would split the directive.
_WITH_BLANKS = re.compile("|".join(_FORMS[:3]))
_LINE = re.compile(
    r"\{%.{0,200}%\}|\{\{.{0,200}\}\}|\{#.{0,200}#\}|<%.{0,200}%>|@\w{1,80}@|<[^<>]{1,80}>|"
    r"\.{3,9}|…"
)


def is_placeholder(text: str) -> bool:
    """Whether a value contains a placeholder: <account>, YOUR_ACCOUNT, {{ nodes }}, @NODES@."""
    return _PLACEHOLDER.search(text) is not None


def without_blanks(text: str) -> str:
    """Join the words of each placeholder, so that it is one word of a directive."""
    return _WITH_BLANKS.sub(lambda match: re.sub(r"\s+", "_", match[0]), text)


def is_template_line(line: str) -> bool:
    """Whether a line is only a placeholder, or a statement of a template."""
    return _LINE.fullmatch(line.strip()) is not None


class Option(Value, frozen=True, kw_only=True):
    """An option under its long name; `spelled` is its spelling in the script.

    `ambiguous` has the options that an ambiguous prefix may mean: the program then refuses it.
    """

    name: str
    value: str | None
    line: int
    spelled: str
    known: bool = True
    ambiguous: tuple[str, ...] = ()
    word: Word | None = None


def read_options(
    words: Sequence[Word], grammar: Grammar, index: int = 0, *, unknown_takes_word: bool = False
) -> tuple[tuple[Option, ...], int]:
    """Read options up to the first other word; return them and that word's index.

    With `unknown_takes_word`, the word after an unknown option is its value, not a program.
    """
    options: list[Option] = []
    while index < len(words):
        text = words[index].text
        if text == "--":
            return tuple(options), index + 1
        if not text.startswith("-") or text == "-":
            break
        following = words[index + 1].text if index + 1 < len(words) else None
        option, took = _option(words[index], following, grammar)
        unknown = not option.known and option.value is None and text.startswith("--")
        if unknown_takes_word and unknown and following and not following.startswith("-"):
            option, took = replace(option, value=following), True
        options.append(option)
        index += 1 + took
    return tuple(options), index


def _option(word: Word, following: str | None, grammar: Grammar) -> tuple[Option, bool]:
    """Return the option of a word, and whether the following word is its value."""
    meant: tuple[str, ...] = ()
    if is_long := word.text.startswith("--"):
        name, equals, value = word.text[2:].partition("=")
        full = name if name in grammar.long else grammar.aliases.get(name)
        # As getopt_long does: the beginning of a name; an alias counts as its option.
        alike = [one for one in (*grammar.long, *grammar.aliases) if name and one.startswith(name)]
        fitting = tuple(dict.fromkeys(grammar.aliases.get(one, one) for one in alike))
        full = full or (fitting[0] if len(fitting) == 1 else None)
        meant = () if full else fitting
    else:
        name, value = word.text[1], word.text[2:]
        full, equals = grammar.short.get(name), value
    kinds = {grammar.long[one] for one in ((full,) if full else meant)}
    took = kinds == {"="} and not equals and following is not None
    option = Option(
        name=full or name,
        value=following if took else value if equals else None,
        line=word.line,
        spelled=f"--{name}" if is_long else f"-{name}",
        known=full is not None,
        ambiguous=meant,
        word=word,
    )
    return option, took


_RANGE = re.compile(r"(?<![\w:%+-])(\d{1,9})-(\d{1,9})(?!\w)")
_TOKEN = re.compile(r"[\w-]+")
_OPENING = ("$", "`", "<", "{", "__")
_LONGEST = 500


class ValueForm(Value, frozen=True, kw_only=True):
    """The accepted text of some options; see the comments of `slurm_values.yaml`."""

    options: tuple[str, ...]
    form: str
    allowed: str
    words: tuple[str, ...] = ()
    part: bool = False
    ascending: bool = False
    open: bool = False

    def matches(self, text: str) -> bool:
        """Whether a whole text is an accepted value, or a part of one."""
        return re.fullmatch(self.form, text, re.IGNORECASE | re.VERBOSE) is not None


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    forms: tuple[ValueForm, ...]
    srun: tuple[ValueForm, ...]


class RefusedValue(Value, frozen=True, kw_only=True):
    """What sbatch does not accept in a value, what it accepts, and the nearest word.

    If `ignored`, sbatch accepts the value without this part.
    """

    part: str
    allowed: str
    nearest: str = ""
    ignored: bool = False


@cache
def value_forms() -> dict[str, ValueForm]:
    """Return the forms of sbatch by the names of their options."""
    return _by_option(load_data("slurm_values.yaml", _File).forms)


@cache
def srun_value_forms() -> dict[str, ValueForm]:
    """Return the forms of srun by the names of their options."""
    return value_forms() | _by_option(load_data("slurm_values.yaml", _File).srun)


def _by_option(forms: tuple[ValueForm, ...]) -> dict[str, ValueForm]:
    return {option: form for form in forms for option in form.options}


def is_unknown(value: str) -> bool:
    """Return whether a value is filled in later, by a template or by hand."""
    return any(mark in value for mark in _OPENING) or is_placeholder(value)


def refused_value(
    option: str, value: str, forms: Mapping[str, ValueForm] | None = None
) -> RefusedValue | None:
    """Return the error of an option's value; None if it is accepted or unknown.

    `forms` are those of sbatch unless others are given.
    """
    form = (value_forms() if forms is None else forms).get(option)
    if form is None or len(value) > _LONGEST or is_unknown(value):
        return None
    parts = [part for part in value.split(",") if part] if form.part else [value]
    wrong = [part for part in parts if not form.matches(part)]
    descends = form.ascending and any(int(a) > int(b) for a, b in _RANGE.findall(value))
    if parts and not wrong and not descends:
        return None
    part = wrong[0] if wrong else value
    near = _nearest(form, part)
    if form.open and not near and not descends:
        return None
    ignored = form.part and len(wrong) < len(parts)
    return RefusedValue(part=part, allowed=form.allowed, nearest=near, ignored=ignored)


def _nearest(form: ValueForm, value: str) -> str:
    """Return the word that is most like one in the value that is none of the form's."""
    known = {word.lower(): word for word in form.words}
    bare = {word.rstrip(":=,"): word for word in known}
    for token in _TOKEN.findall(value):
        lower = token.lower()
        if lower in known:
            # Some options need capital letters.
            if form.matches(known[lower]) and not form.matches(token):
                return known[lower]
            continue
        near = difflib.get_close_matches(lower, list(bare), n=1, cutoff=0.6)
        # A word that lacks its list, `map_cpu:`, is the nearest to itself.
        if near and known[bare[near[0]]] != value:
            return known[bare[near[0]]]
    return ""


def with_plugins(grammar: Grammar, site: SiteProfile | None) -> Grammar:
    """Add the options of the site, and those of the plug-ins that several sites have."""
    known = {name: kind for options in plugin_options().values() for name, kind in options.items()}
    own = {name: KINDS[value] for name, value in _declared(site).items()}
    return replace(grammar, long={**known, **own, **grammar.long})


def plugin_of(option: str, site: SiteProfile | None) -> str:
    """Return the plug-in of an option; empty for Slurm's own, and for those the site declares."""
    if option in _declared(site):
        return ""
    found = (name for name, options in plugin_options().items() if option in options)
    return next(found, "")


def _declared(site: SiteProfile | None) -> dict[str, str]:
    return dict(site.plugin_options) if site else {}


MARKER = "#SBATCH"


class Directive(Value, frozen=True, kw_only=True):
    """One `#SBATCH` line; sbatch ignores a `late` one, and rejects a job with `stray` words.

    `group` counts the `#SBATCH hetjob` lines before it, `unclosed` is an unterminated quote.
    """

    line: int
    text: str
    options: tuple[Option, ...]
    stray: tuple[str, ...] = ()
    unclosed: str = ""
    late: bool = False
    group: int = 0


def read_directives(
    lines: tuple[str, ...], grammar: Grammar, inner: frozenset[int]
) -> tuple[Directive, ...]:
    """Return all directives in order, except those on `inner` lines: the text of another script."""
    stop, found, group = first_command(lines), [], 0
    for number, line in enumerate(lines, 1):
        late = 0 < stop < number
        if not line.startswith(MARKER) or (late and number in inner):
            continue
        words, unclosed = split_directive(without_blanks(line[len(MARKER) :]))
        if words[:1] in (["hetjob"], ["packjob"]):
            group += 1
            continue
        made = [Word(raw=word, text=word, line=number) for word in words]
        options: list[Option] = []
        stray: list[str] = []
        index = 0
        while index < len(made):
            read, index = read_options(made, grammar, index, unknown_takes_word=True)
            options += read
            stray += [word.text for word in made[index : index + 1]]
            index += 1
        found.append(
            Directive(
                line=number,
                text=line[len(MARKER) :],
                options=tuple(options),
                stray=tuple(stray),
                unclosed=unclosed,
                late=late,
                group=group,
            )
        )
    return tuple(found)


def first_command(lines: tuple[str, ...]) -> int:
    """Return the line at which sbatch stops reading directives; 0 when there is none."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#") and not is_template_line(line):
            return number
    return 0


_PART = re.compile(r"\\(.)|\\$|(['\"])|(\s+)|(#)|([^\\'\"\s#]+)", re.DOTALL)


def split_directive(text: str) -> tuple[list[str], str]:
    """Split at blanks, heeding quotes and backslashes; `#` ends it, even inside a word."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    for match in _PART.finditer(text):
        escaped, mark, blank, comment, plain = match.groups()
        if quote:
            if mark == quote:
                quote = ""
            else:
                word = (word or "") + (escaped or match[0])
        elif mark:
            quote, word = mark, word or ""
        elif comment:
            break
        elif blank:
            words += [] if word is None else [word]
            word = None
        else:
            word = (word or "") + (escaped or plain or "")
    return words + ([] if word is None else [word]), quote


class RequestedResources(Value, frozen=True, kw_only=True):
    """The effective options (the last of each name) and the sizes that follow from them.

    `batch` is false for a script without directives: its options are on the command line of sbatch.
    """

    batch: bool
    options: dict[str, Option]
    nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    gpus_per_node: int | None = None

    def has(self, *names: str) -> bool:
        """Return whether any of these options is given."""
        return any(name in self.options for name in names)

    def value(self, name: str) -> str | None:
        """Return the value of an option; None without it."""
        return self.options[name].value if name in self.options else None

    @property
    def gpus(self) -> bool:
        """Whether an option requests GPUs."""
        named = self.has("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")
        return named or "gpu" in (self.value("gres") or "").replace("gpu:0", "")

    def line(self, *names: str) -> int:
        """Return the line of the last of these options; 1 if none is given."""
        lines = [self.options[name].line for name in names if name in self.options]
        return max(lines, default=1)

    @property
    def slurm(self) -> dict[str, int]:
        """The variables that Slurm will set, as far as they are known."""
        known = {
            "SLURM_NNODES": self.nodes,
            "SLURM_JOB_NUM_NODES": self.nodes,
            "SLURM_NTASKS": self.tasks,
            "SLURM_NPROCS": self.tasks,
            "SLURM_NTASKS_PER_NODE": self.tasks_per_node,
            "SLURM_TASKS_PER_NODE": self.tasks_per_node if self.nodes == 1 else None,
            "SLURM_CPUS_PER_TASK": self.cpus_per_task,
            "SLURM_GPUS_ON_NODE": self.gpus_per_node,
            "SLURM_GPUS_PER_NODE": _number(self.value("gpus-per-node")),
        }
        return {name: value for name, value in known.items() if value is not None}


def asked_of(directives: Iterable[Directive]) -> RequestedResources:
    """Read the sizes; a heterogeneous job has none, because its components differ."""
    directives = tuple(directives)
    if any(directive.group for directive in directives):
        return RequestedResources(batch=True, options={})
    options = {o.name: o for d in directives if not d.late for o in d.options}
    bare = RequestedResources(batch=bool(directives), options=options)
    if not directives:
        return bare
    nodes = _nodes(bare)
    tasks, per_node = _tasks(bare, nodes)
    return RequestedResources(
        batch=True,
        options=options,
        nodes=nodes,
        tasks=tasks,
        tasks_per_node=per_node,
        cpus_per_task=_number(bare.value("cpus-per-task")),
        gpus_per_node=_gpus(bare, nodes),
    )


def _number(text: str | None) -> int | None:
    match = re.fullmatch(r"^\s*(\d{1,9})\s*", text or "")
    return int(match[1]) if match else None


def _nodes(asked: RequestedResources) -> int | None:
    if asked.has("nodes"):
        low, _, high = (asked.value("nodes") or "").partition("-")
        return _number(low) if high in ("", low) else None
    spread = ("ntasks", "nodelist", "gpus", "ntasks-per-gpu", "gpus-per-task", "nodefile")
    return None if asked.has(*spread) and _number(asked.value("ntasks")) != 1 else 1


def _tasks(asked: RequestedResources, nodes: int | None) -> tuple[int | None, int | None]:
    if asked.has("ntasks-per-gpu", "gpus-per-task", "ntasks-per-socket") and not asked.has(
        "ntasks", "ntasks-per-node"
    ):
        return None, None
    tasks, per_node = _number(asked.value("ntasks")), _number(asked.value("ntasks-per-node"))
    if asked.has("ntasks-per-node"):
        total = nodes * per_node if nodes and per_node else None
        return (tasks if asked.has("ntasks") else total), per_node
    if asked.has("ntasks"):
        return tasks, share(tasks, nodes)
    return nodes, 1


def _gpus(asked: RequestedResources, nodes: int | None) -> int | None:
    if asked.has("gpus-per-node"):
        return gpu_count(asked.value("gpus-per-node") or "")
    if "gpu" in (asked.value("gres") or ""):
        gpus = [one.count for one in gres(asked.value("gres") or "") if one.name == "gpu"]
        return sum(gpus) if gpus else None
    if asked.has("gpus"):
        return share(gpu_count(asked.value("gpus") or ""), nodes)
    return None


def share(total: int | None, parts: int | None) -> int | None:
    """Return what each part has; None if that is unknown, or they have not the same."""
    return total // parts if total and parts and total % parts == 0 else None


def gpu_count(text: str) -> int | None:
    """Read `4` or `a100:4`."""
    return _number(text.rpartition(":")[2])
