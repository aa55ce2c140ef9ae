"""The shell language: words with their quotes, commands, here-documents, the blocks around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from hpc_train.base.values import Value

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


_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "time", "{", "}"))
_REDIRECT = re.compile(r"\d{0,10}(?:&>>|&>|<<<|<<-|<<|<>|>>|>\||[<>]&|[<>])")
_OPERATOR = re.compile(r"\n|&&|\|\||;;&|;;|;&|\|&|[;&|()]")
_BLANKS = re.compile(r"[ \t\r]*(?:(?:\\\n|#.*(?!.))[ \t\r]*)*")
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
_IN_BRACES = re.compile(r"\$\{[#!]?([A-Za-z_]\w*|0)")
_ENDS = frozenset(" \t\r\n;&|()<>")
_DEEPEST = 30


class ShellText(Value, frozen=True, kw_only=True):
    """All commands and here-documents of a text, and the unterminated constructs, innermost
    first."""

    commands: tuple[Command, ...]
    documents: tuple[HereDocument, ...] = ()
    unclosed: tuple[Unclosed, ...] = ()


def read_commands(text: str, line: int = 1) -> ShellText:
    """Read shell text; invalid text yields meaningless words, but no error."""
    reader = _Reader(Cursor(text, line), 0)
    while reader.cursor.left:
        reader.read()
    reader.take_documents()
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
        self._text: list[str] = []
        self._expanded: list[str] = []
        self._held: list[str] = []

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

    def _commands(self) -> None:
        """Take `$(…)`, `<(…)` or `>(…)`, and read the commands in it."""
        cursor, start, line = self.cursor, self.cursor.at, self.cursor.line
        opening = cursor.take(2)
        if self.depth < _DEEPEST and not self._inner(cursor):
            cursor.close(")", opening, line)
        self._text.append(cursor.text[start : cursor.at])

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
            self.take_documents()

    def take_documents(self) -> None:
        """Read the here-documents that the last line has begun; at the end they have no lines."""
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

    def _word(self, *, arrays: bool = True) -> Word:
        """Return the word that begins here; it takes at least one character."""
        cursor, outer = self.cursor, (self._text, self._expanded, self._held)
        self._text, self._expanded, self._held = [], [], []
        text, expanded, held = self._text, self._expanded, self._held
        start, line = cursor.at, cursor.line
        items: tuple[Word, ...] = ()
        if cursor.sees("(("):
            self._parentheses("((")
        elif cursor.sees("<(", ">("):
            self._commands()
        while cursor.left and cursor.next not in _ENDS:
            self._part()
            if cursor.next == "(" and arrays and ASSIGNMENT.fullmatch("".join(text)):
                items = self._items()
        if cursor.at == start:
            text.append(cursor.take())
        self._text, self._expanded, self._held = outer
        return Word(
            raw=cursor.text[start : cursor.at],
            text="".join(text),
            line=line,
            expanded=tuple(expanded),
            held=tuple(held),
            items=items,
        )

    def _part(self) -> None:
        cursor = self.cursor
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
        self.cursor.take()
        if self.cursor.next == "$":
            held = self.cursor.match(_VARIABLE)
            self._held += [held[1]] if held else []
        escaped = self.cursor.take()
        self._text.append("" if escaped == "\n" else escaped)

    def _single(self, opening: str, inner: re.Pattern[str]) -> None:
        cursor = self.cursor
        line = cursor.line
        cursor.take(len(opening))
        text = cursor.take_match(inner)
        cursor.close("'", opening, line)
        self._text.append(text)
        self._held += _VARIABLE.findall(text)

    def _double(self) -> None:
        cursor = self.cursor
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
        cursor = self.cursor
        start, line = cursor.at, cursor.line
        plain = cursor.match(_PLAIN_VARIABLE)
        if cursor.sees("$(("):
            cursor.take()
            self._parentheses("$((")
            return
        if cursor.sees("$("):
            self._commands()
            return
        if cursor.sees("${"):
            self._braces()
        elif cursor.next == "`":
            inner = Cursor(_in_backticks(cursor), line, cursor.unclosed)
            if self.depth < _DEEPEST:
                self._inner(inner)
        elif plain:
            self._expanded += [plain[1]] if plain[1] else []
            cursor.take(len(plain[0]))
        else:
            cursor.take()
        self._text.append(cursor.text[start : cursor.at])

    def _braces(self) -> None:
        """Take `${…}`; quotes and further expansions in it have ends of their own."""
        cursor, line, kept = self.cursor, self.cursor.line, len(self._text)
        start, open_ = cursor.at, ["}"]
        cursor.take(2)
        while cursor.left and open_:
            if cursor.take_match(_PLAIN_IN_BRACES):
                continue
            if cursor.next == open_[-1]:
                open_.pop()
                cursor.take()
            elif cursor.sees("${", '"'):
                open_.append("}" if cursor.next == "$" else '"')
                cursor.take(2 if cursor.next == "$" else 1)
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
        first = _IN_BRACES.match(taken)
        self._expanded += [first[1]] if first else []
        self._expanded += _VARIABLE.findall(taken[2:])

    def _parentheses(self, opening: str) -> None:
        """Take balanced parentheses as they are."""
        cursor = self.cursor
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
        cursor = self.cursor
        line = cursor.line
        cursor.take()
        items: list[Word] = []
        while cursor.left and cursor.next != ")":
            if cursor.next in " \t\r\n" or cursor.sees("\\\n"):
                cursor.take(2 if cursor.next == "\\" else 1)
            elif cursor.next == "#":
                cursor.take_to("\n")
            else:
                items.append(self._word(arrays=False))
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


Kind = Literal["loop", "branch"]
_LOOPS = frozenset(("while", "until"))
_BRANCHES = frozenset(("then", "else", "elif"))


class Block(Value, frozen=True, kw_only=True):
    """A loop, or a branch of `if`, `case`, `&&` or `||`; `condition` is the text of its test."""

    kind: Kind
    condition: str = ""


def repeats(blocks: Blocks) -> bool:
    """Whether a loop may run a command more than once."""
    return any(block.kind == "loop" for block in blocks)


def depends(blocks: Blocks) -> bool:
    """Whether a condition decides if a command runs."""
    return any(block.kind == "branch" for block in blocks)


class _Open:
    """A compound command that has not ended, with the blocks that it has opened so far."""

    def __init__(self, kind: Kind, end: str, condition: str = "") -> None:
        self.kind: Kind = kind
        self.end = end
        self.condition = condition
        self.entered = kind == "loop" or end == "esac"


Blocks = tuple[Block, ...]


def read_blocks(commands: Iterable[Command]) -> Iterator[tuple[Command, Blocks]]:
    """Yield each command with the blocks around it, outermost first, and at most 30 of them."""
    opened: list[_Open] = []
    guard = ""
    inner: list[Command] = []
    for command in commands:
        # The commands of a substitution come before the command around it.
        if command.inside:
            inner.append(command)
            continue
        _enter(opened, command)
        yield from ((one, _around(opened, guard)) for one in (*inner, command))
        inner = []
        guard = _text(command) if command.ending in ("&&", "||") else ""
    yield from ((one, _around(opened, guard)) for one in inner)


def _around(opened: list[_Open], guard: str) -> Blocks:
    blocks = [
        Block(kind=one.kind, condition=one.condition.strip())
        for one in opened[:_DEEPEST]
        if one.entered
    ]
    return (*blocks, *([Block(kind="branch", condition=guard)] if guard else []))


def _enter(opened: list[_Open], command: Command) -> None:
    for keyword in command.keywords:
        if keyword == "if":
            opened.append(_Open("branch", "fi"))
        elif keyword in _LOOPS:
            opened.append(_Open("loop", "done"))
        elif keyword in _BRANCHES and opened:
            opened[-1].entered = True
    first = command.words[0].raw if command.words else ""
    if opened and first == opened[-1].end:
        opened.pop()
    elif first in ("for", "select"):
        opened.append(_Open("loop", "done", _text(command)))
    elif first == "case":
        opened.append(_Open("branch", "esac", _text(command)))
    elif opened and opened[-1].end == "fi" and not opened[-1].entered:
        opened[-1].condition += f" {_text(command)}"


def _text(command: Command) -> str:
    return " ".join(word.raw for word in (*command.assignments, *command.words))
