"""The variables that a script sets, and how it starts its ranks: srun, mpirun, torchrun, nested."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from msgspec.structs import replace

from hpc_train.base.shell import ASSIGNMENT, Command, Word, read_commands
from hpc_train.base.slurm_options import Grammar
from hpc_train.base.values import Value
from hpc_train.lint.directives import Option, read_options

_DECLARING = frozenset(("export", "declare", "typeset", "readonly", "local"))
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_BARE = re.compile(r"\b[A-Za-z_]\w*\b")
_PRODUCT = re.compile(r"^\s*\d{1,9}(?:\s*\*\s*\d{1,9})*\s*")
_ROUNDS = 6
# Values that branches give to one variable.
_MOST = 20
_LONGEST = 2000
_LARGEST = 10**9


class Assignment(Value, frozen=True, kw_only=True):
    """`NAME=value`; `exported` if programs that are started afterwards inherit it."""

    name: str
    value: str
    line: int
    word: Word
    exported: bool
    inside: str = ""

    @property
    def literal(self) -> bool:
        """Whether the value is known without running the script."""
        return not self.word.expanded and "$" not in self.value and "`" not in self.value


def read_assignments(commands: Iterable[Command]) -> tuple[Assignment, ...]:
    """Return all assignments in order; one that is exported later counts as exported."""
    commands = tuple(commands)
    exported = set(_exported(commands))
    return tuple(found for command in commands for found in _assignments(command, exported))


def _exported(commands: Iterable[Command]) -> Iterator[str]:
    for command in commands:
        texts = [word.text for word in command.words]
        if _exports(command) and "-n" not in texts:
            yield from texts[1:]
        if texts[:1] == ["set"] and any(re.match(r"allexport$|-[a-zA-Z]*a", t) for t in texts[1:]):
            yield "*"


def _exports(command: Command) -> bool:
    """Whether a command is `export`, or `declare -x`."""
    declares = command.program in ("declare", "typeset")
    flags = declares and any(re.match(r"-\w*x", word.text) for word in command.words)
    return flags or command.program == "export"


def _assignments(command: Command, exported: set[str]) -> Iterator[Assignment]:
    for word in command.assignments:
        yield _assignment(word, exported, command, seen=bool(command.words))
    is_env = command.program == "env"
    for word in command.words[1:] if is_env or command.program in _DECLARING else ():
        if ASSIGNMENT.match(word.raw):
            yield _assignment(word, exported, command, seen=is_env or _exports(command))
        elif is_env and not word.text.startswith("-"):
            return
    if command.program in MPIRUNS:
        for option, word in pairwise(command.words):
            if option.text == "-x" and ASSIGNMENT.match(word.text):
                yield _assignment(word, exported, command, seen=True)


def _assignment(word: Word, exported: set[str], command: Command, *, seen: bool) -> Assignment:
    name, _, value = word.text.partition("=")
    name = name.rstrip("+").partition("[")[0]
    return Assignment(
        name=name,
        value=value,
        line=word.line,
        word=word,
        exported=seen or name in exported or "*" in exported,
        inside="command" if command.words and not command.program == "export" else command.inside,
    )


class Values(Value, frozen=True, kw_only=True):
    """The variables whose value is known without running the script: set once, or by Slurm.

    `several` are those that different branches set.
    """

    once: dict[str, Assignment]
    slurm: dict[str, int]
    several: dict[str, tuple[Assignment, ...]]

    def substitute(self, text: str) -> str:
        """Replace each `$NAME` whose value is known; the others are unchanged."""
        for _ in range(_ROUNDS):
            if len(text) > _LONGEST or "$" not in text:
                break
            new = _REFERENCE.sub(lambda match: self._value(match[1] or match[2], match[0]), text)
            if new == text:
                break
            text = new
        return text

    def _value(self, name: str, otherwise: str) -> str:
        if name in self.slurm:
            return str(self.slurm[name])
        known = self.once[name].value if name in self.once else otherwise
        return known if len(known) <= _LONGEST else otherwise

    def number(self, text: str | None) -> int | None:
        """Return the value of an arithmetic text, if it is known."""
        if text is None:
            return None
        known = self.substitute(text).strip()
        if known.startswith("$((") and known.endswith("))"):
            known = _BARE.sub(lambda match: self._value(match[0], match[0]), known[3:-2])
            known = self.substitute(known)
        if not _PRODUCT.fullmatch(known):
            return None
        product = 1
        for factor in known.split("*"):
            product = min(product * int(factor), _LARGEST)
        return product


def known_values(
    assignments: Iterable[Assignment], slurm: dict[str, int], branches: Collection[Word]
) -> Values:
    """Keep the variables that are set once or appended to; the words of `branches` may not run."""
    found: dict[str, list[Assignment]] = {}
    for one in assignments:
        if one.inside not in ("", "substitution"):
            continue
        every = found.setdefault(one.name, [])
        value = ""
        if len(every) == 1 and one.word not in branches:
            before, word = every[0], every[0].word
            itself = re.search(rf"\$(?:{one.name}\b|\{{{one.name}\}})", one.value)
            if itself:
                value = one.value.replace(itself[0], before.value)
            elif re.match(r"\w{1,99}\+=", one.word.text):
                value = before.value + one.value
        if value:
            word = replace(word, raw=f"{one.name}={value}", items=word.items + one.word.items)
            every[0] = replace(before, value=value[:_LONGEST], word=word)
        else:
            every.append(one)
    return Values(
        once={name: every[0] for name, every in found.items() if len(every) == 1},
        slurm=slurm,
        several={name: tuple(every) for name, every in found.items() if len(every) > 1},
    )


MPIRUNS = ("mpirun", "mpiexec", "orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi")
_REMOTE = ("ssh", "pdsh", "clush")
SHELLS = ("bash", "sh", "zsh", "ksh", "dash")
# They start the rest of their line; those with a subcommand only behind it.
_WRAPPERS = frozenset(
    """
    exec command nohup env builtin time stdbuf nice timeout numactl taskset ionice setsid unbuffer
    catchsegv xvfb-run eval sudo unshare shifter
    """.split()
)
_RUNNERS = frozenset(
    """
    uv conda mamba micromamba pixi poetry pipenv apptainer singularity nsys rocprof ncu docker
    podman podman-hpc enroot
    """.split()
)
_SUBCOMMANDS = ("run", "exec", "profile", "launch", "start")
_WITH_VALUE = ("--with", "--extra", "--group", "-p", "--python", "-n", "--name", "-s", "-k", "-u")
_STARTED = re.compile(
    r"srun|torchrun|accelerate|deepspeed|python[\d.]*|(?:mpi|orte|prte)(?:run|exec)"
)
_FLAGS = frozenset(
    """
    standalone no-python module use-env virtual-local-rank m multi-gpu use-deepspeed use-fsdp cpu
    no-local-rank no-ssh no-ssh-check force-multi quiet debug same-network dynamo-use-dynamic
    """.split()
)
_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_WHICH = re.compile(r"(?:\$\(|`)\s*(?:which|command -v|type -p)\s+(\w+)\s*(?:\)|`)")
_LOOPS = ("for", "select", "case", "function", "[", "[[", "echo", "printf", "which", "command")


class LaunchCommand(Value, frozen=True, kw_only=True):
    """A command that starts ranks.

    `outer` is srun, mpirun, ssh or empty; `starter` starts the training program below it (torchrun,
    accelerate, deepspeed, python, or mpirun below srun). If `opaque`, a variable with an unknown
    value may contain options, and options of the starter if `hides`; if `asks`, the command queries
    something and trains nothing.
    """

    command: Command
    outer: str
    options: tuple[Option, ...]
    opaque: bool
    words: tuple[Word, ...]
    starter: str
    starter_line: int
    flags: dict[str, str | None]
    hides: bool = False
    by_shell: bool = False
    asks: bool = False

    @property
    def line(self) -> int:
        """The line on which the command begins."""
        return self.command.line

    @property
    def texts(self) -> list[str]:
        """The texts of its words."""
        return [word.text for word in self.words]

    def option(self, *names: str) -> Option | None:
        """Return srun's option of one of these names, the last one."""
        found = [option for option in self.options if option.name in names]
        return found[-1] if found else None


def read_launches(
    commands: Iterable[Command], values: Values, grammar: Grammar
) -> tuple[LaunchCommand, ...]:
    """Return the commands that start ranks, in order; `grammar` has the options of srun."""
    return tuple(one for command in commands for one in _launches(command, values, grammar))


def _launches(command: Command, values: Values, grammar: Grammar) -> list[LaunchCommand]:
    """Return the launch of a command; if branches set its words, the one that starts several."""
    if command.program in _REMOTE:
        # The text that a shell on another node runs.
        texts = (word for word in command.words[2:] if " " in word.text and word.raw[0] in "'\"")
        inner = (one for word in texts for one in read_commands(word.text, word.line).commands)
        launches = (one for text in inner for one in _launches(text, values, grammar))
        return [replace(one, command=command, outer=one.outer or "ssh") for one in launches]
    names = (
        match and (match[1] or match[2])
        for match in (WHOLE.fullmatch(word.raw) for word in command.words[:3])
    )
    chosen = next((values.several[name] for name in names if name in values.several), ())
    ways = [replace(values, once={**values.once, one.name: one}) for one in chosen[:_MOST]]
    known = ways or [values]
    found = [one for one in (_launch(command, each, grammar) for each in known) if one is not None]
    return [one for one in found if one.outer][:1] or found[:1]


def _launch(command: Command, values: Values, grammar: Grammar) -> LaunchCommand | None:
    words = _unwrapped(command.words, values)
    if not words or words[0].text in _LOOPS:
        return None
    if words[0].text.startswith("$"):
        words = flatten(words[:1], values) + words[1:]
    named = _WHICH.fullmatch(words[0].text) if words else None
    if named:
        words = (replace(words[0], text=named[1]), *words[1:])
    program = words[0].text.rpartition("/")[2] if words else ""
    if program == "srun":
        resolved = tuple(part for word in words[1:] for part in _resolved(word, values))
        options, index = read_options(resolved, grammar)
        return _below(command, "srun", options, resolved[index:], values)
    if program in MPIRUNS:
        return _below(command, "mpirun", (), words[1:], values)
    if not program.startswith(("torchrun", "accelerate", "deepspeed", "python")) and (
        [program, *(word.text for word in words[1:2])] != ["uv", "run"]
    ):
        return None
    launch = _below(command, "", (), words, values)
    return launch if launch.starter else None


def _unwrapped(words: tuple[Word, ...], values: Values) -> tuple[Word, ...]:
    """Step over what starts the rest of its line: timeout, uv run, a container, eval, bash -c."""
    names = [word.text.rpartition("/")[2] for word in words[:2]]
    if names[:1] == ["eval"]:
        texts = ((values.substitute(word.text), word.line) for word in words[1:])
        flat = (words[0], *(inner for text, line in texts for inner in _words_of(text, line)))
    elif any(name in SHELLS for name in names[:1]) and any(is_shell(words, i) for i in range(4)):
        flat = flatten(words, values)
    elif names[:1] and (
        names[0] in _WRAPPERS or (names[0] in _RUNNERS and names[-1] in _SUBCOMMANDS)
    ):
        flat = flatten(words, values)
    else:
        return words
    for before, (index, word) in zip(flat, enumerate(flat[1:], 1), strict=False):
        name = word.text.rpartition("/")[2]
        if before.text not in _WITH_VALUE and _STARTED.fullmatch(name):
            return flat[index:]
    return words


def _below(
    command: Command,
    outer: str,
    options: tuple[Option, ...],
    words: tuple[Word, ...],
    values: Values,
) -> LaunchCommand:
    flat = flatten(words, values)
    starter, index = _starter(flat)
    has_flags = starter not in ("", "python", "mpirun")
    flags, hides = _flags(flat[index + 1 :] if has_flags else ())
    program = flat[0].text if flat else ""
    return LaunchCommand(
        command=command,
        outer=outer,
        options=options,
        opaque=program.startswith("$") or any("$" in o.spelled for o in options),
        words=flat,
        starter=starter,
        starter_line=flat[index].line if starter else command.line,
        flags=flags,
        hides=hides or any(word.text.startswith("$") for word in flat[:index]),
        by_shell=any(is_shell(command.words, i) for i in range(len(command.words))),
        asks=_asks(starter, flat[index + 1 :]),
    )


def _asks(starter: str, words: tuple[Word, ...]) -> bool:
    """Whether the command only queries or installs something, as `python -m pip` does."""
    if starter != "python":
        return any(word.text == "--help" for word in words)
    rest = [word.text for word in words[:2]]
    asking = rest[:1] in (["-c"], ["-V"], ["--version"], ["-"], [])
    return asking or rest in (["-m", "pip"], ["-m", "venv"], ["-m", "torch.utils.collect_env"])


def flatten(words: Sequence[Word], values: Values) -> tuple[Word, ...]:
    """Replace known variables, and the text of `bash -c`, by the words that they are."""
    flat: list[Word] = []
    for index, word in enumerate(words):
        if index and is_shell(words, index - 1):
            flat += shell_words(word, values)
        else:
            flat += _resolved(word, values)
        if len(flat) > _LONGEST:
            break
    return tuple(flat)


def _resolved(word: Word, values: Values) -> tuple[Word, ...]:
    match = WHOLE.fullmatch(word.raw)
    name = (match[1] or match[2]) if match else ""
    if name not in values.once:
        return (word,)
    known = values.once[name]
    if known.word.items:
        return known.word.items[:_LONGEST]
    if word.raw.startswith('"'):
        return (Word(raw=word.raw, text=known.value, line=word.line),)
    text = values.substitute(known.value)
    return _words_of(text, known.line) if len(text) <= _LONGEST else (word,)


@lru_cache(maxsize=256)
def _words_of(text: str, line: int) -> tuple[Word, ...]:
    """Split a value as the shell does when it is not quoted."""
    commands = (one for one in read_commands(text, line).commands if not one.inside)
    return tuple(w for command in commands for w in (*command.assignments, *command.words))


def is_shell(words: Sequence[Word], index: int) -> bool:
    """Whether the word after `index` is a text that a shell will run."""
    option = re.fullmatch(r"-[a-z]*c", words[index].text) if index < len(words) else None
    before = [word.text.rpartition("/")[2] for word in words[max(0, index - 3) : index]]
    return bool(option) and any(name in SHELLS for name in before)


def _starter(words: Sequence[Word]) -> tuple[str, int]:
    """Find the program that starts the ranks: its name, and the index of its last word."""
    python = -1
    for index, word in enumerate(words):
        name = word.text.rpartition("/")[2]
        if index and words[index - 1].text in ("--with", "--extra", "--group"):
            continue
        if name in ("torchrun", "deepspeed"):
            return name, index
        if name == "accelerate" and words[index + 1 : index + 2]:
            return name, index + 1
        if name in MPIRUNS:
            return "mpirun", index
        if word.text in _MODULES and index and words[index - 1].text == "-m":
            return "torchrun", index
        if re.fullmatch(r"python[\d.]*", name) and python < 0:
            python = index
    texts = [word.text for word in words]
    if python < 0 and texts[:2] == ["uv", "run"]:
        # It starts the file with Python.
        python = next((i for i, text in enumerate(texts[1:]) if text.endswith(".py")), -1)
    return ("python", python) if python >= 0 else ("", 0)


def _flags(words: Sequence[Word]) -> tuple[dict[str, str | None], bool]:
    """Read a launcher's options, with `-` for `_`, and whether an unknown word may hold some."""
    flags: dict[str, str | None] = {}
    index = 0
    while index < len(words) and words[index].text.startswith("-"):
        name, equals, value = words[index].text.lstrip("-").partition("=")
        name = name.replace("_", "-")
        index += 1
        if equals or name in _FLAGS:
            flags[name] = value if equals else None
        elif index < len(words) and not words[index].text.startswith("--"):
            flags[name] = words[index].text
            index += 1
        else:
            flags[name] = None
    raw = words[index].raw if index < len(words) else ""
    return flags, raw.startswith("$") or re.match(r"\"\$\{\w+\[[@*]\]", raw) is not None


WHOLE = re.compile(r"\"?\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?\})\"?")


def shell_words(word: Word, values: Values) -> Iterator[Word]:
    """Yield the words of `bash -c WORD`; the text may be in a variable that is set once."""
    match = WHOLE.fullmatch(word.raw)
    known = values.once.get(match[1] or match[2]) if match else None
    source = known.word if known else word
    text = values.substitute(known.value if known else word.text)
    # Inserted and joined lines hide the source of each word; the launch itself is certain.
    alike = text.count("\n") == source.raw.count("\n")
    for command in (one for one in read_commands(text).commands if not one.inside):
        for inner in command.words:
            yield replace(inner, line=source.line + inner.line - 1 if alike else word.line)
