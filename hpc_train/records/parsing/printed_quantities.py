"""A hand-written line -> its numbers, each with the words before it and the unit after it.

Numbers within dates, clocks, versions, addresses, names and decimals with a comma are no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hpc_train.records.parsing.printed_numbers import number

_LONGEST = 600
_ITEMS = r"images?|imgs?|samples?|examples?|tokens?|toks?|seqs?|sequences?"
_STEPS = r"its?|iters?|iterations?|steps?|batch(?:es)?|epochs?"
_TIMES = r"ms|msecs?|milliseconds?|s|secs?|seconds?|mins?|minutes?"
_NUMBER = re.compile(
    r"(?<![\w.])(?<!\d[:/,-])(?<![A-Za-z]-)"
    r"([-+]?(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15})(?:\.\d{0,20})?(?:[eE][-+]?\d{1,3})?)"
    r"(?: ?/ ?(\d{1,15})(?![\w.]))?"
    rf"(?: ?([kKM])?((?<=[kKM])| ?)((?:{_ITEMS}|{_STEPS})(?: ?/ ?| per )(?:s|secs?|seconds?)"
    rf"|(?:{_TIMES})(?:(?: ?/ ?| per )(?:{_STEPS}))?|GiB|MiB|GB|MB|%)"
    r"((?: ?/ ?| per )(?:gpu|GPU|device|rank|process|worker))?(?![\w/%]))?"
    r"(?!\w|%|[.,:/-]\d)"
)
# Units in front of which `k` and `M` stand.
_THOUSANDS = frozenset({"sample/s", "token/s"})
_CLAUSE = re.compile(r"[,;|\[\]{}<>\t\"'#]| [->]+ |  ")
_NO_WORD = re.compile(r"[^a-z0-9]+")


class Quantity(NamedTuple):
    """A number: the words before it in its clause, what it is out of, and its unit.

    `words` are in lower case, with single spaces; `text` is the number as it was printed. `each` is
    the part of the job that a rate belongs to (`gpu`), empty if none is named.
    """

    words: str
    text: str
    value: float
    total: str = ""
    unit: str = ""
    each: str = ""


def quantities(text: str) -> Iterator[Quantity]:
    """Yield the quantities of a line, in order; a long line has none."""
    if len(text) > _LONGEST:
        return
    end = 0
    for match in _NUMBER.finditer(text):
        clause = _CLAUSE.split(text[end : match.start()].rstrip(" :=[(\"'"))[-1]
        end = match.end()
        printed, total, suffix, _, unit, each = match.groups(default="")
        value = number(printed)
        scale = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}[suffix]
        unit = plain_unit(unit)
        if value is not None and (not suffix or unit in _THOUSANDS):
            part = words(each).rpartition(" ")[2]
            yield Quantity(words(clause), printed, value * scale, total, unit, part)


def words(text: str) -> str:
    """Return the words of a text or a key, in lower case with single spaces."""
    return _NO_WORD.sub(" ", text.lower()).strip()


def plain_unit(unit: str) -> str:
    """Return a unit in one spelling: `images per second` as `image/s`, `msec/it` as `ms/step`."""
    over, _, under = unit.replace(" per ", "/").replace(" ", "").partition("/")
    return _spelt(over) + ("/" + _spelt(under) if under else "")


def _spelt(word: str) -> str:
    return _SPELT.get(word, word)


_SPELT = {
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("image", "images", "img", "imgs"), "sample"),
    **dict.fromkeys(("sample", "samples", "example", "examples"), "sample"),
    **dict.fromkeys(("seq", "seqs", "sequence", "sequences"), "sample"),
    **dict.fromkeys(("token", "tokens", "tok", "toks"), "token"),
    **dict.fromkeys(("it", "its", "iter", "iters", "iteration", "iterations"), "it"),
    **dict.fromkeys(("step", "steps", "batch", "batches"), "step"),
    **dict.fromkeys(("epoch", "epochs"), "epoch"),
}
