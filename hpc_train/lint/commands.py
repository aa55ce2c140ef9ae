"""Shell text -> simple commands, in order, with those inside `$(…)` and backticks."""

from __future__ import annotations

import re

from hpc_train.lint.quoting import WordReader
from hpc_train.lint.words import ASSIGNMENT, Command, Cursor, HereDocument, Word
from hpc_train.model.value import Value

_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "time", "{", "}"))
_REDIRECT = re.compile(r"\d*(?:&>>|&>|<<<|<<-|<<|<>|>>|>\||[<>]&|[<>])")
_OPERATOR = re.compile(r"\n|&&|\|\||;;|\|&|[;&|()]")
_DEEPEST = 30


class ShellText(Value, frozen=True, kw_only=True):
    """All commands and here-documents of a text."""

    commands: tuple[Command, ...]
    documents: tuple[HereDocument, ...] = ()


def read_commands(text: str, line: int = 1) -> ShellText:
    """Read shell text; what is no valid shell gives words that mean little, but no error."""
    reader = _Reader(Cursor(text, line), 0)
    while reader.cursor.left:
        reader.read()
    return ShellText(commands=tuple(reader.commands), documents=tuple(reader.documents))


class _Reader:
    def __init__(self, cursor: Cursor, depth: int, inside: str = "") -> None:
        self.cursor = cursor
        self.depth = depth
        self.inside = inside
        self.commands: list[Command] = []
        self.documents: list[HereDocument] = []
        self._words: list[Word] = []
        self._redirects: list[str] = []
        self._pending: list[tuple[str, bool]] = []

    def read(self) -> None:
        """Read to the end, or behind a `)` that was not opened here."""
        cases = opened = 0
        while self._skip_blanks():
            redirect = self.cursor.match(_REDIRECT)
            if redirect and not self.cursor.sees("<(", ">("):
                self._redirection(redirect[0])
                continue
            operator = self.cursor.match(_OPERATOR)
            if operator is None or self._arithmetic():
                self._words.append(self._word())
                continue
            self.cursor.take(len(operator[0]))
            cases += self._change_of_cases()
            self._end(operator[0])
            if operator[0] == "(":
                opened += 1
            elif operator[0] == ")" and cases <= 0:
                if opened == 0:
                    return
                opened -= 1
        self._end("")

    def _skip_blanks(self) -> bool:
        """Step over blanks, joined lines and comments; tell whether anything is left."""
        cursor = self.cursor
        while cursor.left:
            if cursor.next in " \t\r":
                cursor.take()
            elif cursor.sees("\\\n"):
                cursor.take(2)
            elif cursor.next == "#":
                end = cursor.text.find("\n", cursor.at)
                cursor.take((len(cursor.text) if end < 0 else end) - cursor.at)
            else:
                return True
        return False

    def _arithmetic(self) -> bool:
        first = self._words[0].raw if self._words else "for"
        return self.cursor.sees("((") and (first == "for" or first in _KEYWORDS)

    def _change_of_cases(self) -> int:
        """`)` closes nothing between `case` and `esac`."""
        words = [word.raw for word in self._words if word.raw not in _KEYWORDS]
        return (words[:1] == ["case"]) - (words[:1] == ["esac"])

    def _redirection(self, operator: str) -> None:
        cursor = self.cursor
        cursor.take(len(operator))
        while cursor.next and cursor.next in " \t":
            cursor.take()
        if not cursor.left or cursor.next == "\n":
            return
        target = self._word()
        self._redirects.append(operator + target.text)
        if operator.lstrip("0123456789") in ("<<", "<<-"):
            self._pending.append((target.text, target.raw != target.text))

    def _word(self) -> Word:
        return WordReader(self.cursor, self._substitution, self._nested).read()

    def _substitution(self) -> None:
        if self.depth >= _DEEPEST:
            return
        inner = _Reader(self.cursor, self.depth + 1, "substitution")
        inner.read()
        self._adopt(inner)

    def _nested(self, text: str, line: int) -> None:
        if self.depth >= _DEEPEST:
            return
        inner = _Reader(Cursor(text, line), self.depth + 1, "substitution")
        inner.read()
        self._adopt(inner)

    def _adopt(self, inner: _Reader) -> None:
        self.commands += inner.commands
        self.documents += inner.documents

    def _end(self, ending: str) -> None:
        words, redirects = self._words, tuple(self._redirects)
        self._words, self._redirects = [], []
        while words and words[0].raw in _KEYWORDS:
            words = words[1:]
        count = 0
        while count < len(words) and ASSIGNMENT.match(words[count].raw):
            count += 1
        if words:
            command = Command(
                words=tuple(words[count:]),
                assignments=tuple(words[:count]),
                redirects=redirects,
                line=words[0].line,
                last_line=self.cursor.line - (ending == "\n"),
                ending=ending,
                inside=self.inside,
            )
            self.commands.append(command)
        if ending == "\n":
            self._take_documents()

    def _take_documents(self) -> None:
        for end, quoted in self._pending:
            line, body = self.cursor.line, []
            while self.cursor.left:
                taken = self.cursor.take_to("\n")
                if taken.strip("\t\r") == end:
                    break
                body.append(taken)
            document = HereDocument(line=line, quoted=quoted, body="\n".join(body))
            self.documents.append(document)
        self._pending = []
