"""The command line of another launcher or program -> the options of hpctrain that mean the same."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.base.errors import SpecError
from hpc_train.base.registry import BUILT_IN
from hpc_train.jobs.read_job import ASSIGNED, command_words, is_program
from hpc_train.plans.launchers.base import MODULES, find_launcher, launcher_called

_PYTHON = re.compile(r"python[0-9.]*")
_FLAGS = ("standalone", "multi-gpu")
_ATTACHED = re.compile(r"^(-[A-Za-z])(\d)")


def in_our_words(line: Sequence[str], known: Sequence[str]) -> list[str] | None:
    """Return `torchrun --nproc_per_node 4 train.py` as options and FILE; None if it is a file.

    Raises:
        SpecError: a command line without a program, one for a shell, or one of a scheduler.
    """
    if Path(line[0]).exists() or not line[0].strip():
        return None
    words, ours, typed = [*line], [], shlex.join(line)[:80]
    if is_quoted := " " in line[0]:
        words, ours = command_words(line[0], "command line"), [*line[1:]]
    options: list[str] = []
    while words and (words[0] == "env" or ASSIGNED.fullmatch(words[0])):
        name, equals, value = words.pop(0).partition("=")
        if equals:
            text = value if re.fullmatch(r"[\w./:+-]+", value) else json.dumps(value)
            options += ["--set", f"env.{name}={text}"]
    if words[1:2] == ["-m"] and words[2:] and (launcher := launcher_called(words[2])):
        words = [launcher, *words[3:]]
    if words and words[0] in BUILT_IN["launchers"]:
        at = next((n for n in range(1, len(words)) if _begins_program(words, n)), len(words))
        options += ["--launcher", words[0], *_options(words[0], words[1:at], known)]
        words = ["python", *words[at:]] if words[at : at + 1] == ["-m"] else words[at:]
    elif words and words[0] in ("sbatch", "qsub"):
        raise SpecError(
            f"{typed}: {words[0]} submits a job script, and hpctrain writes its own",
            "name the program that it starts: hpctrain submit train.py; "
            f"hpctrain lint {next((w for w in words[1:] if Path(w).suffix), 'JOB.sh')} checks one",
        )
    if words and _PYTHON.fullmatch(words[0]):
        at = next((n for n, word in enumerate(words) if n and word not in ("-u", "-O")), len(words))
        words = words if words[at : at + 1] == ["-m"] else words[at:]
    if not words or words[0].startswith("-"):
        raise SpecError(f"{typed}: names no program or script")
    program, *arguments = words
    is_quoted = is_quoted or (is_program(program) and _ends_with_its_own(arguments, known, typed))
    meant = [*options, *ours, program, *(["--"] if is_quoted and arguments else []), *arguments]
    return None if meant == [*line] else meant


def _ends_with_its_own(arguments: list[str], known: Sequence[str], typed: str) -> bool:
    """Whether the options behind a program are its own.

    Raises:
        SpecError: one behind its script may be of hpctrain as well.
    """
    if "--" in arguments:
        arguments.remove("--")
        return True
    last = max((n for n, word in enumerate(arguments) if _is_script(word)), default=0)
    both = next((word for word in arguments[last:] if word.partition("=")[0] in known), "")
    if both:
        raise SpecError(
            f"{typed}: {both} may be of hpctrain or of the program",
            "options of hpctrain come before the program, those of the program after --",
        )
    return True


def _is_script(word: str) -> bool:
    return bool(_PYTHON.fullmatch(word)) or word.endswith(".py") or Path(word).is_file()


def _begins_program(words: Sequence[str], n: int) -> bool:
    """Whether the options of a launcher end before a word."""
    before, word = words[n - 1], words[n]
    if word.startswith("-"):
        # Launchers that are themselves modules of Python start modules.
        return word == "-m" and not set(MODULES.values()).isdisjoint(
            find_launcher(words[0]).programs
        )
    is_bare = before.startswith("-") and "=" not in before and not _ATTACHED.match(before)
    is_value = is_bare and before.lstrip("-").replace("_", "-") not in _FLAGS
    return _is_script(word) or not (is_value or (n == 1 and word == "launch"))


def _options(launcher: str, words: Sequence[str], known: Sequence[str]) -> Iterator[str]:
    """Yield the options of a launcher as those of hpctrain; others become `launcher_args`."""
    others, left, typed = [], list(words), find_launcher(launcher).typed
    while left:
        # A letter and its number may be one word.
        word = _ATTACHED.sub(r"\1=\2", left.pop(0))
        option, equals, value = word.partition("=")
        name = option.lstrip("-").replace("_", "-")
        if not equals and left and not left[0].startswith("-") and name not in _FLAGS:
            value = left.pop(0)
        meant = typed.get(name, option if option in known else None)
        if meant:
            yield from (meant, value) if value else (meant,)
        elif meant is None and option.startswith("-"):
            others.append(f"{option}={value}" if value else option)
    if others:
        yield from ("--set", f"launcher_args={json.dumps(others)}")
