"""The `#PBS` lines of a script, read as qsub reads them.

Source: OpenPBS 23.06, qsub(1B); which lines its qsub accepted; `get_script` and `pbs_fgets_extend`
of its source for lines that are continued.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from hpc_train.lint.placeholders import is_template_line, without_blanks
from hpc_train.model.value import Value

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

    `stray` has a line number and the word; `late` and `marked` are line numbers: `marked` continue
    a line, and begin with `#PBS`, which there begins a comment.
    """

    options: tuple[PbsOption, ...]
    stray: tuple[tuple[int, str], ...] = ()
    late: tuple[int, ...] = ()
    marked: tuple[int, ...] = ()

    def all(self, letter: str) -> tuple[PbsOption, ...]:
        """Return the options of a letter, in order."""
        return tuple(one for one in self.options if one.letter == letter)

    def last(self, letter: str) -> PbsOption | None:
        """Return the option of a letter that takes effect."""
        return (self.all(letter) or (None,))[-1]


def joined_lines(lines: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Join `#PBS` lines that end in a backslash with those after them, as qsub does for the job.

    The lines that were joined to an earlier one are empty. Also return the numbers of those that
    begin with `#PBS`.
    """
    read = list(lines)
    marked: list[int] = []
    index = 0
    while index < len(read):
        first, line = index, read[index]
        if _MARKER.match(line) is None and _is_command(line):
            break
        while _MARKER.match(line) and (end := _CONTINUED.search(line)) and index + 1 < len(read):
            index += 1
            line = line[: end.start()] + read[index]
            marked += [index + 1] if _MARKER.match(read[index]) else []
            read[first], read[index] = line, ""
        index += 1
    return tuple(read), tuple(marked)


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
    """Split as the shell does; a comment ends the line, an open quote the words."""
    plain = without_blanks(text)
    try:
        return shlex.split(plain, comments=True)
    except ValueError:
        return plain.split()
