"""The `#PBS` lines of a script, read as qsub reads them, and what they request.

Source: OpenPBS 23.06, qsub(1B) and pbs_resources(7B); which lines its qsub accepted; `get_script`
and `pbs_fgets_extend` of its source for lines that are continued.
"""

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
    """An option of a `#PBS` line, or a resource of its `-l`; the value is empty without one.

    The name of an option is a letter; it is longer for a word that qsub does not know.
    """

    name: str
    value: str
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

    @property
    def slots(self) -> int | None:
        """The slots of MPI: one for each chunk that does not say otherwise; None if unknown."""
        name = "ppn" if "ppn" in self.resources else "mpiprocs"
        each = self.number(name) if name in self.resources else 1
        return self.count * each if self.count is not None and each is not None else None


class PbsRequest(Value, frozen=True, kw_only=True):
    """The `#PBS` lines of a script as qsub reads them, and the sizes that follow from them.

    qsub refuses lines with `stray` words, of which it has the line and the word, and ignores the
    lines `late`.
    """

    options: tuple[PbsOption, ...]
    resources: tuple[PbsOption, ...]
    chunks: tuple[PbsChunk, ...]
    stray: tuple[tuple[int, str], ...]
    late: tuple[int, ...]

    def __bool__(self) -> bool:
        """Whether the script has a `#PBS` line."""
        return bool(self.options or self.stray or self.late)

    def option(self, letter: str) -> PbsOption | None:
        """Return the option of a letter that takes effect."""
        return next((one for one in reversed(self.options) if one.name == letter), None)

    def resource(self, name: str) -> PbsOption | None:
        """Return the resource of a name that takes effect."""
        return next((one for one in reversed(self.resources) if one.name == name), None)

    @property
    def nodes(self) -> int | None:
        """The number of chunks, or that of `-l nodes=N`; None if it is unknown."""
        return _total([chunk.count for chunk in self.chunks])

    @property
    def ranks(self) -> int | None:
        """The number of slots that MPI finds; None if it is unknown."""
        return _total([chunk.slots for chunk in self.chunks])

    @property
    def gpus_per_node(self) -> int | None:
        """The GPUs of a chunk, if all chunks have as many and the job says so."""
        found = {chunk.number("ngpus") for chunk in self.chunks}
        return found.pop() if len(found) == 1 else None


def _total(counts: list[int | None]) -> int | None:
    return sum(filter(None, counts)) if counts and None not in counts else None


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


def read_pbs_request(lines: tuple[str, ...], inner: frozenset[int]) -> PbsRequest:
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
    resources = tuple(
        PbsOption(name=name.strip(), value=value, line=option.line)
        for option in options
        if option.name == "l"
        for name, _, value in (part.partition("=") for part in option.value.split(","))
    )
    asked = {one.name: one.value for one in resources}
    text = asked.get("select", asked.get("nodes", ""))
    return PbsRequest(
        options=tuple(options),
        resources=resources,
        chunks=tuple(_chunk(part) for part in text.split("+") if part),
        stray=tuple(stray),
        late=tuple(late),
    )


def _is_command(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#") and not is_template_line(line)


def _words(text: str, line: int) -> Iterator[PbsOption | str]:
    """Yield the options of a line as getopt finds them, and the words that are none."""
    plain = without_blanks(text)
    try:
        # As the shell does, but for comments, which qsub does not know here.
        words = shlex.split(plain)
    except ValueError:
        words = plain.split()
    while words:
        word = words.pop(0)
        name, value = word[1:2], word[2:]
        if not word.startswith("-") or word == "-":
            yield word
            continue
        if name in WITH_VALUE:
            value = value or (words.pop(0) if words else "")
        elif name not in WITHOUT_VALUE or value:
            # The value of an unknown option is no word of its own.
            name = word.lstrip("-")
            value = words.pop(0) if words and not words[0].startswith("-") else ""
        yield PbsOption(name=name, value=value, line=line)


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
