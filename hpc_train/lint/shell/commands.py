"""Shell text -> simple commands, in order, with those inside `$(…)` and backticks."""

from __future__ import annotations

import re

from hpc_train.lint.shell.ast import ASSIGNMENT, Command, Cursor, HereDocument, Unclosed, Word
from hpc_train.lint.shell.word_reader import WordReader
from hpc_train.model.value import Value

_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "time", "{", "}"))
_REDIRECT = re.compile(r"\d{0,10}(?:&>>|&>|<<<|<<-|<<|<>|>>|>\||[<>]&|[<>])")
_OPERATOR = re.compile(r"\n|&&|\|\||;;&|;;|;&|\|&|[;&|()]")
_BLANKS = re.compile(r"[ \t\r]*(?:(?:\\\n|#.*(?!.))[ \t\r]*)*")
_DEEPEST = 30


class ShellText(Value, frozen=True, kw_only=True):
    """All commands and here-documents of a text, and the unterminated constructs, innermost "
    "first."""

    commands: tuple[Command, ...]
    documents: tuple[HereDocument, ...] = ()
    unclosed: tuple[Unclosed, ...] = ()


def read_commands(text: str, line: int = 1) -> ShellText:
    """Read shell text; invalid text yields meaningless words, but no error."""
    reader = _Reader(Cursor(text, line), 0)
    while reader.cursor.left:
        reader.read()
    reader.end()
    return ShellText(
        commands=tuple(reader.commands),
        documents=tuple(reader.documents),
        unclosed=tuple(reader.cursor.unclosed),
    )


class _Reader:
    def __init__(self, cursor: Cursor, depth: int, inside: str = "") -> None:
        self.cursor = cursor
        self.depth = depth
        self.inside = inside
        self.commands: list[Command] = []
        self.documents: list[HereDocument] = []
        self._words: list[Word] = []
        self._keywords: list[str] = []
        self._redirects: list[str] = []
        self._pending: list[tuple[str, str, bool, int]] = []
        self._open: list[str] = []
        self._pattern = False

    def read(self) -> bool:
        """Read to the end, or behind an unmatched `)`; return whether there was one."""
        while self._more():
            redirect = self.cursor.match(_REDIRECT)
            if redirect and not self.cursor.sees("<(", ">("):
                self._redirection(redirect[0])
                continue
            operator = self.cursor.match(_OPERATOR)
            if operator is None or self._arithmetic():
                self._words.append(self._word())
                continue
            self.cursor.take(len(operator[0]))
            closed = self._closes(operator[0])
            self._end(operator[0])
            if closed:
                return True
        self._end("")
        return False

    def _more(self) -> bool:
        """Step over blanks, joined lines and comments; return whether text is left."""
        self.cursor.take_match(_BLANKS)
        return self.cursor.left

    def end(self) -> None:
        """Record the here-documents that have no lines."""
        self._take_documents()

    def _closes(self, operator: str) -> bool:
        """Count the open parentheses; a `)` after a pattern of `case` closes none."""
        first = next((word.raw for word in self._words if word.raw not in _KEYWORDS), "")
        if first == "case":
            self._open.append("case")
        elif first == "esac" and self._open[-1:] == ["case"]:
            self._open.pop()
        in_case = self._open[-1:] == ["case"]
        if in_case and (first == "case" or operator.startswith((";;", ";&"))):
            self._pattern = True
        elif first == "esac":
            self._pattern = False
        if operator == "(" and not self._pattern:
            self._open.append("(")
        elif operator == ")" and self._pattern:
            self._pattern = False
        elif operator == ")":
            return not self._open or self._open.pop() != "("
        return False

    def _arithmetic(self) -> bool:
        first = self._words[0].raw if self._words else "for"
        return self.cursor.sees("((") and (first == "for" or first in _KEYWORDS)

    def _redirection(self, operator: str) -> None:
        cursor = self.cursor
        cursor.take(len(operator))
        while cursor.next and cursor.next in " \t":
            cursor.take()
        if not cursor.left or cursor.next == "\n":
            return
        target = self._word()
        self._redirects.append(operator + target.text)
        operator = operator.lstrip("0123456789")
        if operator in ("<<", "<<-"):
            quoted = target.raw != target.text
            self._pending.append((operator, target.text, quoted, target.line))

    def _word(self) -> Word:
        return WordReader(self.cursor, self._substitution, self._nested).read()

    def _substitution(self) -> None:
        line = self.cursor.line
        opening = self.cursor.text[self.cursor.at - 2 : self.cursor.at]
        if self.depth < _DEEPEST and not self._inner(self.cursor):
            self.cursor.close(")", opening, line)

    def _nested(self, text: str, line: int) -> None:
        if self.depth < _DEEPEST:
            self._inner(Cursor(text, line, self.cursor.unclosed))

    def _inner(self, cursor: Cursor) -> bool:
        inner = _Reader(cursor, self.depth + 1, "substitution")
        closed = inner.read()
        self.commands += inner.commands
        self.documents += inner.documents
        self._pending += inner._pending
        return closed

    def _end(self, ending: str) -> None:
        words, redirects = self._words, tuple(self._redirects)
        self._words, self._redirects = [], []
        while words and words[0].raw in _KEYWORDS:
            self._keywords.append(words[0].raw)
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
                keywords=tuple(self._keywords),
            )
            self.commands.append(command)
            self._keywords = []
        if ending == "\n":
            self._take_documents()

    def _take_documents(self) -> None:
        for operator, end, quoted, begun in self._pending:
            line, body = self.cursor.line, []
            ended = False
            while self.cursor.left and not ended:
                taken = self.cursor.take_to("\n").rstrip("\r")
                ended = (taken.lstrip("\t") if operator == "<<-" else taken) == end
                body += [] if ended else [taken]
            if not ended:
                self.cursor.unclosed.append(Unclosed(opening=f"{operator}{end}", line=begun))
            document = HereDocument(line=line, quoted=quoted, body="\n".join(body))
            self.documents.append(document)
        self._pending = []
