"""A command line of qsub and the `#PBS` lines of its script -> a request, as OpenPBS 23.06."""

import getopt
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

QUEUE = "workq"
_OPTIONS = "hVzIXa:A:c:C:e:j:k:l:m:M:N:o:p:P:q:r:R:S:u:v:W:"
_BYTES = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_COUNTED = ("ncpus", "ngpus", "mpiprocs", "ompthreads")


class RefusedError(Exception):
    """qsub refuses a request, with the exit code and the words of a real one."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Chunk(NamedTuple):
    """What a job requests of one node; memory in bytes."""

    ncpus: int = 1
    ngpus: int = 0
    mem: int = 0
    mpiprocs: int = 0
    ompthreads: int = 0


class JobRequest(NamedTuple):
    """A job that qsub accepts."""

    name: str
    script: str
    chunks: tuple[Chunk, ...]
    place: str
    walltime_s: int | None
    output: str
    live: bool
    held: bool
    variables: dict[str, str]


def read_request(words: Sequence[str], folder: str, shell: Mapping[str, str]) -> JobRequest:
    """Read a request; options of the command line take precedence over those of the script.

    Raises:
        RefusedError: a real qsub refuses it.
    """
    options, (file,) = _options(words)
    script = Path(folder, file).read_text(encoding="utf-8")
    lines = [line[4:] for line in script.splitlines() if re.match(r"#PBS\s+-", line)]
    given = {key: values for line in lines for key, values in _options(_split(line))[0].items()}
    # Resources of both are joined, those of the command line last.
    listed = [one for line in lines for one in _options(_split(line))[0].get("l", [])]
    last = {key: values[-1] for key, values in {**given, **options}.items()}
    if last.get("q", QUEUE) != QUEUE:
        raise RefusedError(170, "Unknown queue")
    if last.get("j", "n") not in ("oe", "eo", "n"):
        raise RefusedError(2, "illegal -j value")
    resources = dict(
        part.split("=", 1) for text in [*listed, *options.get("l", [])] for part in text.split(",")
    )
    return JobRequest(
        name=last.get("N", Path(file).name),
        script=script,
        chunks=_chunks(resources),
        place=resources.get("place", "free" if "select" in resources else "pack"),
        walltime_s=_seconds(resources["walltime"]) if "walltime" in resources else None,
        output=str(Path(folder, last["o"])) if "o" in last else "",
        live="d" in last.get("k", "n"),
        held="h" in last,
        variables=_variables(last.get("v", ""), shell),
    )


def _split(line: str) -> list[str]:
    return shlex.split(line, comments=True)


def _options(words: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    found: dict[str, list[str]] = {}
    pairs, rest = getopt.getopt(list(words), _OPTIONS)
    for option, value in pairs:
        found.setdefault(option[1:], []).append(value)
    return found, rest


def _chunks(resources: Mapping[str, str]) -> tuple[Chunk, ...]:
    """Return the chunks of `select`, or the one of a flat request."""
    if "select" not in resources:
        flat = {name: text for name, text in resources.items() if name in (*_COUNTED, "mem")}
        return (_chunk(flat),)
    found: list[Chunk] = []
    for part in resources["select"].split("+"):
        count, _, words = part.partition(":")
        found += [_chunk(dict(word.split("=", 1) for word in words.split(":") if word))] * int(
            count
        )
    return tuple(found)


def _chunk(words: Mapping[str, str]) -> Chunk:
    numbers = {}
    for name, text in words.items():
        if name not in (*_COUNTED, "mem"):
            raise RefusedError(187, f"Unknown resource: {name}")
        size = re.fullmatch(r"(\d+)([kmgt]?b?)", text, re.IGNORECASE)
        if size is None:
            raise RefusedError(166, f"Illegal attribute or resource value {name}")
        numbers[name] = int(size[1]) * _BYTES[size[2].lower()]
    return Chunk(**numbers)


def _seconds(text: str) -> int:
    found = 0
    for part in text.split(":"):
        found = found * 60 + int(part)
    return found


def _variables(text: str, shell: Mapping[str, str]) -> dict[str, str]:
    """Read the list of -v: NAME, NAME=VALUE, and quotes around a value with a comma."""
    found = {}
    for part in re.findall(r"(?:[^,'\"]|'[^']*'|\"[^\"]*\")+", text):
        name, sign, value = part.partition("=")
        plain = re.sub(r"'([^']*)'|\"([^\"]*)\"", lambda one: one[1] or one[2] or "", value)
        found[name] = plain if sign else shell.get(name, "")
    return found
