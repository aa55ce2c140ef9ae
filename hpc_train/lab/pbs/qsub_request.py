"""Arguments of qsub and #PBS lines -> a request, or the refusal of a real qsub.

Exit codes are PBS's error numbers modulo 256, as OpenPBS 23.06 gave them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.lab.pbs.array_range import ArrayRange, read_array
from hpc_train.lab.pbs.resource_list import (
    Chunk,
    RefusedError,
    read_chunks,
    read_place,
    read_resources,
    read_walltime,
)
from hpc_train.model.value import Value

_FLAGS, _WITH_VALUE = "hVzIX", "aAcCeJjkKlmMNopPqrRSuvW"
_MARKER = re.compile(r"#PBS(?=[\s-])")
_CONTINUED = re.compile(r"\\\s*\Z")
_KEEP = re.compile(r"n|d?[oe]{1,2}|[oe]{1,2}d|[oe]d[oe]")
_NAME = re.compile(r"[!-~]{1,230}")


class JobRequest(Value, frozen=True, kw_only=True):
    """A job that qsub accepts."""

    name: str
    script: str
    queue: str
    chunks: tuple[Chunk, ...]
    place: str = "free"
    walltime_s: int | None = None
    resources: dict[str, str]
    output: str = ""
    errors: str = ""
    joined: bool = False
    live: bool = False
    held: bool = False
    rerunnable: bool = True
    project: str = "_pbs_project_default"
    account: str = ""
    variables: dict[str, str]
    arguments: str = ""
    array: ArrayRange | None = None


def read_request(
    arguments: Sequence[str], folder: str, shell: Mapping[str, str], queue: str
) -> JobRequest:
    """Read a command line of qsub, and the directives of its script, which it overrides.

    Raises:
        RefusedError: with the exit code and the words of a real qsub.
    """
    options, rest = _options(arguments)
    if len(rest) != 1:
        raise RefusedError(2, "usage: qsub [-a date_time] [-A account_string] ... [script]")
    path = Path(folder, rest[0])
    try:
        script = path.read_bytes().decode(errors="replace")
    except OSError:
        raise RefusedError(1, f"script file {rest[0]} cannot be loaded") from None
    if "\r\n" in script:
        raise RefusedError(5, "script contains cr, lf")
    for line in reversed(_directives(script)):
        given, stray = _options(_words(line))
        if stray:
            raise RefusedError(2, f"directive error: {line.strip()} ")
        options = _merged(given, options)
    return _request(options, (script, path.name), (folder, shell, queue), " ".join(arguments))


def _directives(script: str) -> list[str]:
    """Return the texts behind `#PBS`; a line that ends in a backslash goes on in the next one."""
    found = []
    lines = script.splitlines()
    while lines:
        line = lines.pop(0)
        if _MARKER.match(line):
            while lines and (end := _CONTINUED.search(line)):
                line = line[: end.start()] + lines.pop(0)
            found.append(line[len("#PBS") :])
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        raise RefusedError(2, f"directive error: {line.strip()} ") from None


def _options(words: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Split arguments as getopt does; each option with all its values, in order."""
    found: dict[str, list[str]] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        letter, value = word[1:2], word[2:]
        if letter in _FLAGS and not value:
            found.setdefault(letter, []).append("")
        elif letter and letter in _WITH_VALUE and (value or rest):
            found.setdefault(letter, []).append(value or rest.pop(0))
        else:
            raise RefusedError(2, f"invalid option -- '{letter}'")
    return found, rest


def _merged(script: dict[str, list[str]], line: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the options of a directive with those of the command line, which take precedence."""
    both = {**script, **line}
    for letter in ("l", "W"):
        if letter in script and letter in line:
            both[letter] = [*script[letter], *line[letter]]
    return both


def _request(
    options: Mapping[str, list[str]],
    script: tuple[str, str],
    place: tuple[str, Mapping[str, str], str],
    arguments: str,
) -> JobRequest:
    text, file_name = script
    folder, shell, queue = place
    last = {letter: values[-1] for letter, values in options.items()}
    _check(last, queue)
    name = last.get("N", file_name)
    resources = read_resources(options.get("l", ()))
    variables = dict(shell) if "V" in options else {}
    for one in options.get("v", ()):
        variables |= _variables(one, shell)
    return JobRequest(
        name=name,
        script=text,
        queue=last.get("q", queue),
        chunks=read_chunks(resources),
        place=read_place(resources),
        walltime_s=read_walltime(resources),
        resources=resources,
        output=str(Path(folder, last["o"])) if "o" in last else "",
        errors=str(Path(folder, last["e"])) if "e" in last else "",
        joined=last.get("j", "n") == "oe",
        live="d" in last.get("k", "n"),
        held="h" in options,
        rerunnable=last.get("r", "y") == "y",
        project=last.get("P", "_pbs_project_default"),
        account=last.get("A", ""),
        variables=variables,
        arguments=arguments,
        array=read_array(last["J"]) if "J" in last else None,
    )


def _check(last: Mapping[str, str], queue: str) -> None:
    if not _NAME.fullmatch(last.get("N", "x")) or re.search(r"['\"]", last.get("N", "")):
        raise RefusedError(2, "illegal -N value")
    if last.get("j", "n") not in ("oe", "eo", "n"):
        raise RefusedError(2, "illegal -j value")
    if not _KEEP.fullmatch(last.get("k", "n")):
        raise RefusedError(2, "illegal -k value")
    if last.get("r", "n") not in ("y", "n"):
        raise RefusedError(2, "illegal -r value")
    if last.get("q", queue) != queue:
        raise RefusedError(170, "Unknown queue")
    if "J" in last and last.get("r", "y") == "n":
        raise RefusedError(2, "cannot submit non-rerunable Array Job")


def _variables(text: str, shell: Mapping[str, str]) -> dict[str, str]:
    """Read the list of -v: NAME, NAME=VALUE, and quotes around a value with a comma."""
    found = {}
    for part in re.findall(r"(?:[^,'\"]|'[^']*'|\"[^\"]*\")+", text):
        name, sign, value = part.partition("=")
        plain = re.sub(
            r"'([^']*)'|\"([^\"]*)\"", lambda quoted: quoted[1] or quoted[2] or "", value
        )
        found[name] = plain if sign else shell.get(name, "")
    return found
