"""The syntax tree of shell text: words with their quotes, commands, here-documents."""

from __future__ import annotations

import re

from hpc_train.model.value import Value

ASSIGNMENT = re.compile(r"^([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=")


class Word(Value, frozen=True, kw_only=True):
    """One word: `text` has no quotes, its expansions stay as they are written.

    The shell that reads the script expands `expanded`; quotes and backslashes keep it from `held`.
    An array's words are its `items`.
    """

    raw: str
    text: str
    line: int
    expanded: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    items: tuple[Word, ...] = ()


class Command(Value, frozen=True, kw_only=True):
    """A simple command; `ending` is the operator after it, `inside` names the enclosing construct.

    `keywords` are the reserved words before it: `then`, `do`, `{`.
    """

    words: tuple[Word, ...]
    assignments: tuple[Word, ...]
    redirects: tuple[str, ...]
    line: int
    last_line: int
    ending: str
    inside: str = ""
    keywords: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The program's name without its folder; empty for a bare assignment."""
        return self.words[0].text.rpartition("/")[2] if self.words else ""


class HereDocument(Value, frozen=True, kw_only=True):
    """The lines between `<<END` and `END`; unless `END` is quoted, the shell expands `expanded`."""

    line: int
    quoted: bool
    body: str

    @property
    def lines(self) -> range:
        """The numbers of its lines."""
        return range(self.line, self.line + self.body.count("\n") + bool(self.body))


class Unclosed(Value, frozen=True, kw_only=True):
    """A construct that `opening` begins on a line and that has no end."""

    opening: str
    line: int


class Cursor:
    """A position in a text, its line, and the unterminated constructs so far."""

    def __init__(self, text: str, line: int = 1, unclosed: list[Unclosed] | None = None) -> None:
        self.text = text
        self.at = 0
        self.line = line
        self.unclosed: list[Unclosed] = [] if unclosed is None else unclosed

    @property
    def left(self) -> bool:
        """Whether any text is left."""
        return self.at < len(self.text)

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def sees(self, *starts: str) -> bool:
        """Return whether the text continues with one of these."""
        return self.text.startswith(starts, self.at)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match a pattern here, without moving."""
        return pattern.match(self.text, self.at)

    def take(self, count: int = 1) -> str:
        """Move on by some characters and return them."""
        taken = self.text[self.at : self.at + count]
        self.at += len(taken)
        self.line += taken.count("\n")
        return taken

    def take_match(self, pattern: re.Pattern[str]) -> str:
        """Move behind the match of a pattern at this position, if any, and return it."""
        found = pattern.match(self.text, self.at)
        return self.take(len(found[0])) if found else ""

    def take_to(self, stop: str) -> str:
        """Move behind the next `stop`, or to the end; return the text before it."""
        end = self.text.find(stop, self.at)
        if end < 0:
            return self.take(len(self.text) - self.at)
        taken = self.take(end - self.at)
        self.take(len(stop))
        return taken

    def close(self, stop: str, opening: str, line: int) -> None:
        """Step over `stop`; if it is missing, record an unterminated construct."""
        if not self.sees(stop):
            self.unclosed.append(Unclosed(opening=opening, line=line))
        self.take(len(stop))
