"""The `#PBS` lines of a script, read as qsub reads them, and what they request.

Source: OpenPBS 23.06, qsub(1B) and pbs_resources(7B); which lines its qsub accepted; `get_script`
and `pbs_fgets_extend` of its source for lines that are continued.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from hpc_train.base.values import Value
from hpc_train.lint.directives import is_template_line, without_blanks

_MARKER = re.compile(r"#PBS(?=[\s-])")
_CONTINUED = re.compile(r"\\\s*\Z")
WITHOUT_VALUE = "fhGIVXz"
WITH_VALUE = "aAcCeJjklmMNopPqrRSuvW"


class PbsOption(Value, frozen=True, kw_only=True):
    """An option of a `#PBS` line; `letter` is longer for a word that qsub does not know."""

    letter: str
    value: str
    line: int

    @property
    def known(self) -> bool:
        """Return whether qsub has it."""
        return len(self.letter) == 1 and self.letter in WITHOUT_VALUE + WITH_VALUE


class PbsDirectives(Value, frozen=True, kw_only=True):
    """The options that qsub reads; it refuses lines with `stray` words, and ignores `late` lines.

    `stray` has a line number and the word; `late` has line numbers.
    """

    options: tuple[PbsOption, ...]
    stray: tuple[tuple[int, str], ...] = ()
    late: tuple[int, ...] = ()

    def all(self, letter: str) -> tuple[PbsOption, ...]:
        """Return the options of a letter, in order."""
        return tuple(one for one in self.options if one.letter == letter)

    def last(self, letter: str) -> PbsOption | None:
        """Return the option of a letter that takes effect."""
        return (self.all(letter) or (None,))[-1]


def joined_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Join `#PBS` lines that end in a backslash with those after them, as qsub does for the job.

    The lines that were joined to an earlier one are empty.
    """
    read = list(lines)
    index = 0
    while index < len(read):
        first, line = index, read[index]
        if _MARKER.match(line) is None and _is_command(line):
            break
        while _MARKER.match(line) and (end := _CONTINUED.search(line)) and index + 1 < len(read):
            index += 1
            line = line[: end.start()] + read[index]
            read[first], read[index] = line, ""
        index += 1
    return tuple(read)


def read_pbs_directives(lines: tuple[str, ...], inner: frozenset[int]) -> PbsDirectives:
    """Read the lines up to the first command; those on `inner` lines belong to another script."""
    options: list[PbsOption] = []
    stray: list[tuple[int, str]] = []
    late: list[int] = []
    ended = False
    for number, line in enumerate(lines, 1):
        match = _MARKER.match(line)
        if match is None:
            ended = ended or _is_command(line)
        elif ended:
            late += [] if number in inner else [number]
        else:
            for found in _words(line[match.end() :], number):
                if isinstance(found, PbsOption):
                    options.append(found)
                else:
                    stray.append((number, found))
                    if found.startswith("#"):
                        break
    return PbsDirectives(options=tuple(options), stray=tuple(stray), late=tuple(late))


def _is_command(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#") and not is_template_line(line)


def _words(text: str, line: int) -> Iterator[PbsOption | str]:
    """Yield the options of a line as getopt finds them, and the words that are none."""
    words = _split(text)
    while words:
        word = words.pop(0)
        letter, value = word[1:2], word[2:]
        if not word.startswith("-") or word == "-":
            yield word
        elif letter in WITHOUT_VALUE and not value:
            yield PbsOption(letter=letter, value="", line=line)
        elif letter in WITH_VALUE:
            yield PbsOption(
                letter=letter, value=value or (words.pop(0) if words else ""), line=line
            )
        else:
            # The value of an unknown option is no word of its own.
            following = words.pop(0) if words and not words[0].startswith("-") else ""
            yield PbsOption(letter=word.lstrip("-"), value=following, line=line)


def _split(text: str) -> list[str]:
    """Split as the shell does, but for comments, which qsub does not know here."""
    plain = without_blanks(text)
    try:
        return shlex.split(plain)
    except ValueError:
        return plain.split()


_COUNT = re.compile(r"(\d{1,7})(?::|\Z)")
_CLOCK = re.compile(r"(?:(?:(\d{1,5}):)?(\d{1,5}):)?(\d{1,9})(?:\.\d{1,9})?")
CHUNK_RESOURCES = (
    "ncpus",
    "ngpus",
    "mpiprocs",
    "ompthreads",
    "mem",
    "vmem",
    "host",
    "vnode",
    "arch",
    "accelerator",
    "accelerator_memory",
    "accelerator_model",
    "naccelerators",
    "nchunk",
)


class PbsResource(Value, frozen=True, kw_only=True):
    """A resource of `-l`: `walltime=1:00:00`; `value` is None without `=`."""

    name: str
    value: str | None
    line: int


class PbsChunk(Value, frozen=True, kw_only=True):
    """A part of `select`: how many, None if unknown, and what each of them has."""

    count: int | None
    resources: dict[str, str]
    text: str

    def number(self, name: str) -> int | None:
        """Return a resource as a number; None if it is absent or unknown."""
        text = self.resources.get(name, "")
        return int(text) if re.fullmatch(r"\d{1,7}", text) else None


class PbsRequest(Value, frozen=True, kw_only=True):
    """The directives of a script for PBS, and the sizes that follow from them."""

    directives: PbsDirectives
    resources: tuple[PbsResource, ...]
    chunks: tuple[PbsChunk, ...]

    def resource(self, name: str) -> PbsResource | None:
        """Return the resource of a name that takes effect."""
        found = [one for one in self.resources if one.name == name]
        return found[-1] if found else None

    @property
    def nodes(self) -> int | None:
        """Return the number of chunks, or that of `-l nodes=N`; None if it is unknown."""
        counts = [chunk.count for chunk in self.chunks]
        return sum(filter(None, counts)) if counts and None not in counts else None

    @property
    def ranks(self) -> int | None:
        """Return the number of slots that MPI finds; None if it is unknown."""
        slots = [_slots(chunk) for chunk in self.chunks]
        return sum(filter(None, slots)) if slots and None not in slots else None

    @property
    def gpus_per_node(self) -> int | None:
        """Return the GPUs of a chunk, if all chunks have as many and the job says so."""
        found = {chunk.number("ngpus") for chunk in self.chunks}
        return found.pop() if len(found) == 1 else None

    @property
    def walltime_s(self) -> int | None:
        """Return the time limit [s]; None without one that PBS reads."""
        found = self.resource("walltime")
        return walltime_seconds(found.value or "") if found else None


def read_pbs_request(directives: PbsDirectives) -> PbsRequest | None:
    """Return the request of a script; None without a `#PBS` line."""
    if not (directives.options or directives.stray or directives.late):
        return None
    resources = tuple(
        PbsResource(name=name.strip(), value=value if sign else None, line=option.line)
        for option in directives.all("l")
        for name, sign, value in (part.partition("=") for part in option.value.split(","))
    )
    request = PbsRequest(directives=directives, resources=resources, chunks=())
    select, nodes = request.resource("select"), request.resource("nodes")
    text = (select or nodes).value if select or nodes else None  # type: ignore[union-attr]
    chunks = tuple(_chunk(part) for part in (text or "").split("+") if part)
    return PbsRequest(directives=directives, resources=resources, chunks=chunks)


def walltime_seconds(text: str) -> int | None:
    """Return a time as PBS reads it, [[HH:]MM:]SS, in seconds."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _chunk(text: str) -> PbsChunk:
    """Read `2:ncpus=8:ngpus=4`, or `2:ppn=8` of the older form."""
    match = _COUNT.match(text)
    rest = text[match.end() :] if match else text
    pairs = [word.partition("=") for word in rest.split(":") if word]
    count = int(match[1]) if match else 1 if text[:1].isalpha() and "=" in text else None
    return PbsChunk(count=count, resources={name: value for name, _, value in pairs}, text=text)


def _slots(chunk: PbsChunk) -> int | None:
    """PBS gives MPI one slot for each chunk that does not say otherwise."""
    name = "ppn" if "ppn" in chunk.resources else "mpiprocs"
    each = chunk.number(name) if name in chunk.resources else 1
    return chunk.count * each if chunk.count is not None and each is not None else None
