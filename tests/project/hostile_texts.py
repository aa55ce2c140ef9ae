"""A regular expression -> texts on which it has the most to do: each of its repeats, pumped."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    from re import _compiler as compiler, _parser as parser
else:
    import sre_compile as compiler
    import sre_parse as parser

UNITS = (
    *" \t0a9AxzZ_.,:;=+-*/%|<>&#~^$@!?'\"`\\()[]{}\x1b\x00é\u00a0━",
    *("0,", "1.", "a ", "a b ", " a", "0 ", "a.", "a,", "a/", "a:", "a=1 ", "a=1,", "a: 1 | "),
    *(
        "'a': 1, ",
        '"a": 1, ',
        "[0]",
        "(a)",
        "--",
        "a-",
        "1e",
        "1:",
        "$a",
        "\\a",
        "-a=",
        "\n",
        "\r\n",
    ),
)
"""What is pumped beside the text of the pattern itself."""
_ENDS = ("\x01", "\n\x01")
_FEW = 8
_KEPT = 12


class Text(NamedTuple):
    """A text: how it begins, what is pumped, how it ends."""

    start: str
    body: str
    end: str

    def longer(self, times: int) -> Text:
        """Return it with what is pumped several times as long."""
        return self._replace(body=self.body * times)

    @property
    def shown(self) -> tuple[str, str]:
        """How it begins and ends, on one line."""
        return self.start + self.body[:40], self.end


def hostile_texts(pattern: re.Pattern[Any], length: int) -> Iterator[Text]:
    """Yield texts of about `length` characters."""
    for before, unit in dict.fromkeys(_pumps(pattern)):
        body = unit * max((length - len(before)) // len(unit), 1)
        yield from (Text(before, body, end) for end in _ENDS)


def _pumps(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """Yield what comes first, and what then is repeated."""
    yield from (("", unit) for unit in UNITS)
    walk = _Walk(pattern)
    yield from walk.sequence(walk.tree, "")


class _Walk:
    """One pattern, read from left to right."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        text, flags = pattern.pattern, pattern.flags
        if isinstance(text, bytes):
            text, flags = text.decode("latin-1"), flags | re.ASCII
        self.tree: Any = parser.parse(text, flags)
        self.groups: dict[int | None, str] = {}

    def sequence(self, items: Sequence[Any], before: str) -> Iterator[tuple[str, str]]:
        """Yield the pumps of what stands in a row behind `before`."""
        start = before
        for item in items:
            yield from self._item(item, before)
            text = self._sample([item])
            before += text
            if text and before.removeprefix(start):
                yield start, before.removeprefix(start)
                yield before, text

    def _item(self, item: Any, before: str) -> Iterator[tuple[str, str]]:
        kind, value = str(item[0]), item[1]
        if kind.endswith("_REPEAT"):
            _, most, body = value
            yield from self.sequence(body, before)
            if most >= _FEW:
                yield from ((before, unit) for unit in self._units(body))
                one = self._sample(body)
                yield from ((before + one, unit) for unit in self._units(body)[:3])
        elif kind == "SUBPATTERN":
            yield from self.sequence(value[-1], before)
        elif kind == "ATOMIC_GROUP":
            yield from self.sequence(value, before)
        elif kind == "BRANCH":
            for branch in value[1]:
                yield from self.sequence(branch, before)
        elif kind in ("ASSERT", "ASSERT_NOT"):
            yield from self.sequence(value[1], before)
        elif kind == "GROUPREF_EXISTS":
            for branch in value[1:]:
                yield from self.sequence(branch or (), before)

    def _units(self, body: Any) -> list[str]:
        """Return texts that the body of a repeat matches, its own sample first."""
        one = self._sample(body)
        alone = self._compiled(body)
        fitting = [unit for unit in UNITS if alone is not None and alone.fullmatch(unit)]
        return [one, *fitting[:_KEPT]] if one else fitting[:_KEPT]

    def _compiled(self, body: Any) -> re.Pattern[str] | None:
        try:
            return compiler.compile(parser.SubPattern(self.tree.state, list(body)), 0)
        except (re.error, ValueError, RuntimeError):
            return None

    def _sample(self, items: Sequence[Any]) -> str:
        return "".join(self._one(str(kind), value) for kind, value in items)

    def _one(self, kind: str, value: Any) -> str:
        if kind.endswith("_REPEAT"):
            least: int = min(value[0], 64)
            return self._sample(value[2]) * least
        if kind in ("IN", "NOT_LITERAL", "ANY"):
            alone = self._compiled([(getattr(parser, kind), value)])
            tried = ("a", "0", " ", *UNITS, *map(chr, range(128)))
            return next((unit for unit in tried if alone and alone.fullmatch(unit)), "")
        if kind == "SUBPATTERN":
            self.groups[value[0]] = self._sample(value[-1])
            return self.groups[value[0]]
        simple: dict[str, Callable[[Any], str]] = {
            "LITERAL": chr,
            "ATOMIC_GROUP": self._sample,
            "BRANCH": lambda branches: self._sample(branches[1][0]),
            "GROUPREF": lambda group: self.groups.get(group, ""),
            "GROUPREF_EXISTS": lambda branches: self._sample(branches[1]),
        }
        return simple.get(kind, lambda _: "")(value)
