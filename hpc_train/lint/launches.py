"""The variables that a script sets, and how it starts its ranks: srun, mpirun, torchrun, nested."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from msgspec.structs import replace

from hpc_train.lint.options import Option, read_options
from hpc_train.lint.shell import ASSIGNMENT, Command, Word, read_commands
from hpc_train.model.value import Value
from hpc_train.slurm_options import Grammar

_DECLARING = frozenset(("export", "declare", "typeset", "readonly", "local"))
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_BARE = re.compile(r"\b[A-Za-z_]\w*\b")
_PRODUCT = re.compile(r"^\s*\d{1,9}(?:\s*\*\s*\d{1,9})*\s*")
_ROUNDS = 6
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
        if command.program in ("export", "declare", "typeset") and "-n" not in texts:
            if command.program == "export" or any(re.match(r"-\w*x", text) for text in texts):
                yield from texts[1:]
        if texts[:1] == ["set"] and any(re.match(r"allexport$|-[a-zA-Z]*a", t) for t in texts[1:]):
            yield "*"


def _assignments(command: Command, exported: set[str]) -> Iterator[Assignment]:
    prefix = bool(command.words)
    for word in command.assignments:
        yield _assignment(word, exported, command, seen=prefix)
    declaring = command.program in _DECLARING
    if declaring or command.program == "env":
        exports = command.program in ("export", "env") or any(
            re.match(r"-\w*x", word.text) for word in command.words
        )
        for word in command.words[1:]:
            if ASSIGNMENT.match(word.raw):
                yield _assignment(word, exported, command, seen=exports)
            elif command.program == "env" and not word.text.startswith("-"):
                return
    if re.match(r"(mpirun|mpiexec|orterun|prterun)", command.program):
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
    """The variables whose value is known without running the script: set once, or by Slurm."""

    once: dict[str, Assignment]
    slurm: dict[str, int]

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


def known_values(assignments: Iterable[Assignment], slurm: dict[str, int]) -> Values:
    """Keep the variables of the script that are set exactly once."""
    found: dict[str, list[Assignment]] = {}
    for assignment in assignments:
        if assignment.inside in ("", "substitution"):
            found.setdefault(assignment.name, []).append(assignment)
    once = {name: every[0] for name, every in found.items() if len(every) == 1}
    return Values(once=once, slurm=slurm)


MPIRUNS = ("mpirun", "mpiexec", "orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi")
SHELLS = ("bash", "sh", "zsh", "ksh", "dash")
_WRAPPERS = ("exec", "command", "nohup", "env", "builtin", "time", "stdbuf", "nice")
_FLAGS = frozenset(("standalone", "no-python", "module", "use-env", "virtual-local-rank", "m"))
_MODULES = {"torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun"}
_LOOPS = ("for", "select", "case", "function", "[", "[[", "echo", "printf", "which", "command")


class LaunchCommand(Value, frozen=True, kw_only=True):
    """A command that starts ranks.

    `outer` is srun, mpirun or empty; `starter` starts the training program below it (torchrun,
    accelerate, deepspeed, python, or mpirun below srun). If `opaque`, a variable with an unknown
    value may contain options; if `asks`, the command queries something and trains nothing.
    """

    command: Command
    outer: str
    options: tuple[Option, ...]
    opaque: bool
    words: tuple[Word, ...]
    starter: str
    starter_line: int
    flags: dict[str, str | None]
    by_shell: bool = False
    asks: bool = False
    module: str = ""

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
    found = (_launch(command, values, grammar) for command in commands)
    return tuple(launch for launch in found if launch is not None)


def _launch(command: Command, values: Values, grammar: Grammar) -> LaunchCommand | None:
    words = _unwrapped(command.words)
    if not words or words[0].text in _LOOPS:
        return None
    if words[0].text.startswith("$"):
        words = flatten(words[:1], values) + words[1:]
    program = words[0].text.rpartition("/")[2] if words else ""
    if program == "srun":
        return _srun(command, words[1:], values, grammar)
    if program in MPIRUNS:
        return _below(command, "mpirun", (), words[1:], values)
    if not program.startswith(("torchrun", "accelerate", "deepspeed", "python")):
        return None
    launch = _below(command, "", (), words, values)
    return launch if launch.starter else None


def _unwrapped(words: tuple[Word, ...]) -> tuple[Word, ...]:
    while words and words[0].text in _WRAPPERS:
        words = words[1:]
        while words and (words[0].text.startswith("-") or re.match(r"^\w+=", words[0].text)):
            words = words[1:]
    return words


def _srun(
    command: Command, words: tuple[Word, ...], values: Values, grammar: Grammar
) -> LaunchCommand:
    resolved = tuple(
        part
        for word in words
        for part in (_resolved(word, values) if "$" in word.text else (word,))
    )
    options, index = read_options(resolved, grammar)
    return _below(command, "srun", options, resolved[index:], values)


def _below(
    command: Command,
    outer: str,
    options: tuple[Option, ...],
    words: tuple[Word, ...],
    values: Values,
) -> LaunchCommand:
    flat = flatten(words, values)
    starter, index, module = _starter(flat)
    program = flat[0].text if flat else ""
    return LaunchCommand(
        command=command,
        outer=outer,
        options=options,
        opaque=program.startswith("$") or any("$" in o.spelled for o in options),
        words=flat,
        starter=starter,
        starter_line=flat[index].line if starter else command.line,
        flags=_flags(flat[index + 1 :]) if starter not in ("", "python", "mpirun") else {},
        by_shell=any(_is_shell(words, i) for i in range(len(words))),
        asks=_asks(starter, flat[index + 1 :]),
        module=module,
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
        if index and _is_shell(words, index - 1):
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
    return _words_of(known.value, known.line) if len(known.value) <= _LONGEST else (word,)


@lru_cache(maxsize=256)
def _words_of(text: str, line: int) -> tuple[Word, ...]:
    """Split a value as the shell does when it is not quoted."""
    commands = read_commands(text, line).commands
    return tuple(w for command in commands for w in (*command.assignments, *command.words))


def _is_shell(words: Sequence[Word], index: int) -> bool:
    """Whether the word after `index` is a text that a shell will run."""
    option = re.fullmatch(r"-[a-z]*c", words[index].text)
    before = [word.text.rpartition("/")[2] for word in words[max(0, index - 3) : index]]
    return bool(option) and any(name in SHELLS for name in before)


def _starter(words: Sequence[Word]) -> tuple[str, int, str]:
    """Find the program that starts the ranks: its name, the index of its last word, its module."""
    python = -1
    for index, word in enumerate(words):
        name = word.text.rpartition("/")[2]
        if name in ("torchrun", "deepspeed"):
            return name, index, ""
        if name == "accelerate" and words[index + 1 : index + 2]:
            return name, index + 1, ""
        if name in MPIRUNS:
            return "mpirun", index, ""
        if word.text in _MODULES and index and words[index - 1].text == "-m":
            return "torchrun", index, word.text
        if re.fullmatch(r"python[\d.]*", name) and python < 0:
            python = index
    return ("python", python, "") if python >= 0 else ("", 0, "")


def _flags(words: Sequence[Word]) -> dict[str, str | None]:
    """Read torchrun's options, with `-` for `_`."""
    flags: dict[str, str | None] = {}
    index = 0
    while index < len(words) and words[index].text.startswith("-"):
        name, equals, value = words[index].text.lstrip("-").partition("=")
        name = name.replace("_", "-")
        index += 1
        if equals or name in _FLAGS:
            flags[name] = value if equals else None
        elif index < len(words):
            flags[name] = words[index].text
            index += 1
    return flags


WHOLE = re.compile(r"\"?\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?\})\"?")


def shell_words(word: Word, values: Values) -> Iterator[Word]:
    """Yield the words of `bash -c WORD`; the text may be in a variable that is set once."""
    match = WHOLE.fullmatch(word.raw)
    known = values.once.get(match[1] or match[2]) if match else None
    source = known.word if known else word
    text = values.substitute(known.value if known else word.text)
    lines = _lines(source.raw, text)
    for command in read_commands(text).commands:
        for inner in command.words:
            # Inserted lines hide the source of each word; the launch itself is certain.
            line = source.line + lines[inner.line - 1] if lines else word.line
            yield replace(inner, line=line)


def _lines(raw: str, text: str) -> Sequence[int]:
    """Return for each line of a text where it begins in its source; empty if that is unknown."""
    count = text.count("\n") + 1
    if count == raw.count("\n") + 1:
        return range(count)
    # Double quotes join a line that ends with a backslash to the next one.
    ends = [line.endswith("\\") for line in raw.split("\n")[:-1]]
    begins = [0, *(number for number, joined in enumerate(ends, 1) if not joined)]
    return begins if len(begins) == count else ()
