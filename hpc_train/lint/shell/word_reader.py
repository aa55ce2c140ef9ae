"""Read one shell word: quotes, escapes and expansions."""

from __future__ import annotations

import re
from collections.abc import Callable

from hpc_train.lint.shell.ast import ASSIGNMENT, Cursor, Word

_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_PLAIN_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*|0)|[1-9@*#?$!-])")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_PLAIN = re.compile(r"[^\\'\"$`\s;&|()<>]+")
_PLAIN_QUOTED = re.compile(r"[^\\\"$`]+")
_PLAIN_IN_BRACES = re.compile(r"[^\\'\"$`}]+")
_PLAIN_IN_BACKTICKS = re.compile(r"[^\\`]+")
_BALANCED = re.compile(r"(?:[^()'\"\\]+|\\.)+", re.DOTALL)
_SINGLE = re.compile(r"[^']*")
# In $'…' a backslash keeps a quote from being the end.
_ESCAPED = re.compile(r"(?:[^'\\]+|\\.)*", re.DOTALL)
_ENDS = frozenset(" \t\r\n;&|()<>")


class WordReader:
    """Reads a word from a cursor; commands inside it are read by `substitution` and `nested`.

    `substitution` reads on from behind `$(` to behind its `)`; `nested` reads a text of its own.
    """

    def __init__(
        self,
        cursor: Cursor,
        substitution: Callable[[], None],
        nested: Callable[[str, int], None],
        *,
        arrays: bool = True,
    ) -> None:
        self._cursor = cursor
        self._substitution = substitution
        self._nested = nested
        self._arrays = arrays
        self._text: list[str] = []
        self._expanded: list[str] = []
        self._held: list[str] = []

    def read(self) -> Word:
        """Return the word that begins here; it takes at least one character."""
        cursor = self._cursor
        start, line = cursor.at, cursor.line
        items: tuple[Word, ...] = ()
        if cursor.sees("(("):
            self._arithmetic("((")
        elif cursor.sees("<(", ">("):
            self._commands()
        while cursor.left and cursor.next not in _ENDS:
            self._part()
            if cursor.next == "(" and self._arrays and ASSIGNMENT.fullmatch("".join(self._text)):
                items = self._items()
        if cursor.at == start:
            self._text.append(cursor.take())
        return Word(
            raw=cursor.text[start : cursor.at],
            text="".join(self._text),
            line=line,
            expanded=tuple(self._expanded),
            held=tuple(self._held),
            items=items,
        )

    def _part(self) -> None:
        cursor = self._cursor
        plain = cursor.match(_PLAIN)
        if plain:
            self._text.append(cursor.take(len(plain[0])))
        elif cursor.next == "\\":
            self._escape()
        elif cursor.next == "'":
            self._single("'", _SINGLE)
        elif cursor.next == '"':
            self._double()
        elif cursor.sees("$'"):
            self._single("$'", _ESCAPED)
        elif cursor.sees('$"'):
            cursor.take()
        else:
            self._expansion()

    def _escape(self) -> None:
        self._cursor.take()
        if self._cursor.next == "$":
            held = self._cursor.match(_VARIABLE)
            self._held += [held[1]] if held else []
        escaped = self._cursor.take()
        self._text.append("" if escaped == "\n" else escaped)

    def _single(self, opening: str, inner: re.Pattern[str]) -> None:
        cursor = self._cursor
        line = cursor.line
        cursor.take(len(opening))
        text = cursor.take_match(inner)
        cursor.close("'", opening, line)
        self._text.append(text)
        self._held += _VARIABLE.findall(text)

    def _double(self) -> None:
        cursor = self._cursor
        line = cursor.line
        cursor.take()
        while cursor.left and cursor.next != '"':
            plain = cursor.match(_PLAIN_QUOTED)
            if plain:
                self._text.append(cursor.take(len(plain[0])))
            elif cursor.next == "\\":
                if not cursor.sees("\\$", "\\`", '\\"', "\\\\", "\\\n"):
                    self._text.append("\\")
                self._escape()
            else:
                self._expansion()
        cursor.close('"', '"', line)

    def _expansion(self) -> None:
        """Take an expansion that begins with `$` or a backtick, without expanding it."""
        cursor = self._cursor
        start, line = cursor.at, cursor.line
        plain = cursor.match(_PLAIN_VARIABLE)
        if cursor.sees("$(("):
            cursor.take()
            self._arithmetic("$((")
            return
        if cursor.sees("$("):
            self._commands()
            return
        if cursor.sees("${"):
            self._braces()
        elif cursor.next == "`":
            self._nested(_in_backticks(cursor), line)
        elif plain:
            self._expanded += [plain[1]] if plain[1] else []
            cursor.take(len(plain[0]))
        else:
            cursor.take()
        self._text.append(cursor.text[start : cursor.at])

    def _commands(self) -> None:
        """Take `$(…)`, `<(…)` or `>(…)`, and read the commands in it."""
        cursor = self._cursor
        start = cursor.at
        cursor.take(2)
        self._substitution()
        self._text.append(cursor.text[start : cursor.at])

    def _braces(self) -> None:
        """Take `${…}`; quotes and further expansions in it have ends of their own."""
        cursor = self._cursor
        start, line = cursor.at, cursor.line
        kept = len(self._text)
        cursor.take(2)
        open_ = ["}"]
        while cursor.left and open_:
            if cursor.take_match(_PLAIN_IN_BRACES):
                continue
            if cursor.next == open_[-1]:
                open_.pop()
                cursor.take()
            elif cursor.sees("${"):
                open_.append("}")
                cursor.take(2)
            elif cursor.next == '"':
                open_.append('"')
                cursor.take()
            elif cursor.next == "'" and open_[-1] == "}":
                self._single("'", _SINGLE)
            elif cursor.sees("$(", "`"):
                self._expansion()
            else:
                cursor.take(2 if cursor.next == "\\" else 1)
        if open_:
            cursor.close(open_[-1], "${", line)
        del self._text[kept:]
        taken = cursor.text[start : cursor.at]
        first = re.match(r"\$\{[#!]?([A-Za-z_]\w*|0)", taken)
        self._expanded += [first[1]] if first else []
        self._expanded += _VARIABLE.findall(taken[2:])

    def _arithmetic(self, opening: str) -> None:
        """Take balanced parentheses as they are."""
        cursor = self._cursor
        start, line = cursor.at, cursor.line
        depth = 0
        while cursor.left:
            if cursor.take_match(_BALANCED):
                continue
            letter = cursor.take()
            if letter in "'\"":
                cursor.take_to(letter)
            depth += (letter == "(") - (letter == ")")
            if depth == 0 and letter == ")":
                break
        else:
            cursor.close(")", opening, line)
        taken = cursor.text[start : cursor.at]
        self._text.append("$" * (cursor.text[start - 1 : start] == "$") + taken)
        self._expanded += _IDENTIFIER.findall(taken)

    def _items(self) -> tuple[Word, ...]:
        """Take the words of `NAME=( … )`."""
        cursor = self._cursor
        line = cursor.line
        cursor.take()
        items: list[Word] = []
        while cursor.left and cursor.next != ")":
            if cursor.next in " \t\r\n" or cursor.sees("\\\n"):
                cursor.take(2 if cursor.next == "\\" else 1)
            elif cursor.next == "#":
                cursor.take_to("\n")
            else:
                reader = WordReader(cursor, self._substitution, self._nested, arrays=False)
                items.append(reader.read())
        cursor.close(")", "=(", line)
        return tuple(items)


def _in_backticks(cursor: Cursor) -> str:
    line = cursor.line
    cursor.take()
    taken: list[str] = []
    while cursor.left and cursor.next != "`":
        plain = cursor.take_match(_PLAIN_IN_BACKTICKS)
        if not plain:
            if cursor.sees("\\`", "\\\\", "\\$"):
                cursor.take()
            plain = cursor.take()
        taken.append(plain)
    cursor.close("`", "`", line)
    return "".join(taken)
