"""The options of sbatch, srun and qsub, and which of them `directives` may set."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

from msgspec.structs import replace

from hpc_train.base.decode import load_data
from hpc_train.base.errors import nearest
from hpc_train.base.values import Value

# gpu, gpu:4, gpu:a100:4(S:0-1), gpu:1g.10gb:7, gres/gpu=2, nvme:1600G, craynetwork:4
_GRES = re.compile(
    r"^(?:gres/)?(?P<name>[^:=,]+)(?::(?P<kind>(?!\d+$)[\w.-]+))?(?:[:=](?P<count>[0-9]{1,9}))?"
)

_SOCKETS = re.compile(r"\([^()]*\)")

# A value of an sbatch option cannot be quoted and ends at a blank.
DIRECTIVE_VALUE = re.compile(r"[A-Za-z0-9_.,:;=+@%/&|*()!\[\]^~-]+")

# How a profile says whether a plug-in's option takes a value -> its kind in a grammar.
KINDS = {"value": "=", "optional": "?", "none": ""}
# Options that hpctrain writes itself -> the key to use instead.
_OURS = {
    "job-name": "name",
    "nodes": "resources.nodes",
    **dict.fromkeys(
        ("ntasks", "ntasks-per-node", "ntasks-per-socket", "ntasks-per-core"),
        "resources.tasks_per_node",
    ),
    "cpus-per-task": "resources.cpus_per_task",
    **dict.fromkeys(
        ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "ntasks-per-gpu"),
        "resources.gpus_per_node",
    ),
    **dict.fromkeys(("cpus-per-gpu", "tres-per-task"), "resources.cpus_per_task"),
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu"), "resources.mem"),
    "time": "resources.time",
    "exclusive": "resources.exclusive",
    **{key: key for key in ("account", "partition", "qos", "constraint", "comment")},
    "chdir": "workdir",
    "no-kill": "elastic.min_nodes",
    "signal": "signal_before_end",
    **dict.fromkeys(("export", "export-file", "get-user-env"), "env"),
    "array": "repetitions of a study",
    **dict.fromkeys(("container", "container-id", "container-image"), "container.image"),
    "container-mounts": "container.mounts",
    "container-workdir": "container.workdir",
    "container-env": "container.env",
    "container-writable": "container.writable",
}
# The options of qsub that a profile or a job may add, and those that hpctrain sets.
_QSUB = frozenset("acIlmMprRSuW")
_RESOURCE = re.compile(r"\w{1,64}=[^=]{1,1000}")
_OURS_OF_QSUB = {
    "N": "name",
    "q": "partition",
    "A": "account",
    "P": "account",
    "o": "--results",
    "e": "--results",
    "j": "--results",
    "k": "pbs.live_output in the profile",
    "v": "env",
    "V": "env, modules or setup",
    "J": "repetitions of a study",
    "h": "hpctrain submit",
}
# Options that would disable the log, the tracking or the script of the job.
_NEVER = frozenset(
    """
    output error input open-mode wrap hetjob wait parsable test-only help usage version verbose
    quiet ignore-pbs
    """.split()
)


_Program = Literal["both", "sbatch", "srun"]


class _File(Value, frozen=True, kw_only=True):
    """`slurm_options.yaml`: names with `=` or `?` behind, letters, variables of sbatch."""

    schema: Literal[1]
    both: str
    sbatch: str
    srun: str
    pyxis: str
    plugins: dict[str, tuple[str, ...]]
    aliases: dict[_Program, dict[str, str]]
    letters: dict[_Program, dict[str, str]]
    variables: dict[str, str]


class Grammar(Value, frozen=True, kw_only=True):
    """The options of a program: long name -> its kind, alias or letter -> long name.

    The kind is `=` for a required value, `?` for an optional one (after `=`), or empty for none.
    """

    long: dict[str, str]
    aliases: dict[str, str]
    short: dict[str, str]


@cache
def _file() -> _File:
    return load_data("slurm_options.yaml", _File)


@cache
def sbatch_grammar() -> Grammar:
    """Return the options of sbatch."""
    return _grammar("sbatch", _file().sbatch)


@cache
def srun_grammar() -> Grammar:
    """Return the options of srun."""
    return _grammar("srun", _file().srun)


def _grammar(program: _Program, own: str) -> Grammar:
    file = _file()
    return Grammar(
        long=_table(f"{file.both} {own} {file.pyxis}".split()),
        aliases=file.aliases["both"] | file.aliases.get(program, {}),
        short=file.letters["both"] | file.letters[program],
    )


@cache
def plugin_options() -> dict[str, dict[str, str]]:
    """Return the known plug-ins of sites: name -> option -> its kind, as in a grammar."""
    return {name: _table(options) for name, options in _file().plugins.items()}


def sbatch_variables() -> dict[str, str]:
    """Return the variables that sbatch reads, each with the option that it sets."""
    return _file().variables


def _table(names: Iterable[str]) -> dict[str, str]:
    return {name.rstrip("=?"): name[-1] if name[-1] in "=?" else "" for name in names}


def directive_text(value: str | int | bool) -> str | None:
    """Return an option's value for sbatch: empty for an option without value, None to omit it."""
    if isinstance(value, bool):
        return "" if value else None
    return str(value)


def directive_problem(
    name: str, value: str | int | bool, plugins: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, str] | None:
    """Return the error of an option and the remedy; None if it is valid.

    `plugins` has the options that the site declares: name -> `value`, `optional` or `none`.
    """
    if name in _OURS:
        return f"hpctrain sets --{name} itself", f"use {_OURS[name]}"
    if name in _NEVER:
        return f"hpctrain needs --{name} to track the run", ""
    if not name[1:]:
        return _letter_problem(name, directive_text(value))
    known = {**{one: KINDS[kind] for one, kind in plugins.items()}, **sbatch_grammar().long}
    if name not in known:
        near = nearest(name.lstrip("-").replace("_", "-"), known)
        return f"sbatch has no option {name!r}{near}", "write long names, without leading dashes"
    return _value_problem(name, directive_text(value), known[name])


def _letter_problem(name: str, text: str | None) -> tuple[str, str] | None:
    """Return the error of an option of qsub, whose options are letters (OpenPBS, qsub(1B))."""
    if name in _OURS_OF_QSUB:
        return f"hpctrain sets -{name} itself", f"use {_OURS_OF_QSUB[name]}"
    if name not in _QSUB:
        return f"neither sbatch nor qsub has an option {name!r}", ""
    if text is not None and not DIRECTIVE_VALUE.fullmatch(text):
        return f"{text!r} cannot be written as a #PBS value", ""
    if name == "l" and not all(map(_RESOURCE.fullmatch, (text or "").split(","))):
        return f"{text!r} is no list of resources", "write l: NAME=VALUE,NAME=VALUE"
    return None


def _value_problem(name: str, text: str | None, kind: str) -> tuple[str, str] | None:
    if text and not DIRECTIVE_VALUE.fullmatch(text):
        return f"{text!r} cannot be written as an #SBATCH value", ""
    if text == "" and kind == "=":
        return f"--{name} needs a value", ""
    if text and not kind:
        return f"--{name} takes no value", f"write `{name}: true`"
    return None


_NAMED = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
_LETTER = re.compile(r"(?:requires an argument|invalid option) -- '(\w)'")
_HELP = re.compile(r"(?<!\S)\S{0,64} ?--help\S{0,64}|--\w{1,64}=help")


class Refusal(Value, frozen=True, kw_only=True):
    """A known refusal: its meaning, the next command, and the options of sbatch that it is about.

    `same` are beginnings of ids of lint rules: an error of one of them on the same line states the
    same problem.
    """

    meaning: str
    advice: str = ""
    options: tuple[str, ...] = ()
    same: tuple[str, ...] = ()


class _Refusals(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    refusals: dict[str, Refusal]


@cache
def known_refusals() -> dict[str, Refusal]:
    """Return the table: a part of a message, in lower case, and what it means."""
    return load_data("slurm_refusals.yaml", _Refusals).refusals


def refusal_of(message: str) -> Refusal | None:
    """Return the first known refusal in a message; None for an unknown message.

    Where the table has no options, they are those that the message itself names.
    """
    lowercase = message.lower()
    found = next((one for words, one in known_refusals().items() if words in lowercase), None)
    if found is None or found.options:
        return found
    return replace(found, options=named_options(message))


def named_options(message: str) -> tuple[str, ...]:
    """Return the options that a message of sbatch names, by their long names if it knows them."""
    letters = [sbatch_grammar().short.get(letter, letter) for letter in _LETTER.findall(message)]
    names = _NAMED.findall(_HELP.sub("", message))
    return tuple(dict.fromkeys((*names, *letters)))


def advice(message: str) -> str:
    """Return the next command, or an empty text for an unknown message."""
    found = refusal_of(message)
    return found.advice if found else ""


class Gres(Value, frozen=True, kw_only=True):
    """Generic resources of a node: `gpu:a100:4` is name, kind and count."""

    name: str
    kind: str
    count: int


def gres(text: str) -> tuple[Gres, ...]:
    """Read a list of generic resources, of a node or of `--gres`.

    Without a number GPUs count once, and sizes with a unit, such as disks, are left out.
    """
    found = map(_GRES.fullmatch, (part.strip() for part in _SOCKETS.sub("", text).split(",")))
    return tuple(
        Gres(name=match["name"], kind=match["kind"] or "", count=int(match["count"] or 1))
        for match in found
        if match and (match["count"] or match["name"] == "gpu")
    )
