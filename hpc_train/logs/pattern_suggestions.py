"""Lines of a log that no parser reads -> patterns that would read the likely measurements.

What a number means is for a person to decide: a suggestion names the line, the metric and its unit.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from math import isclose
from pathlib import Path
from typing import NamedTuple

from hpc_train.base.errors import LogParseError
from hpc_train.base.metrics import UNITS
from hpc_train.base.regex import literal_of
from hpc_train.jobs.log_selection import LogPattern
from hpc_train.logs.formats.generic import RATES, SECONDS, Quantity, quantities, with_unit_of_key
from hpc_train.logs.formats.pattern import UserPattern
from hpc_train.logs.line import Line, blocks
from hpc_train.logs.log_file import open_log, readable

MOST_LINES = 50_000
_MOST = 3
_SHORTEST_LITERAL = 4
_CONTEXT = 40
_SHOWN = 80
_NO_UNIT = ("1", "1/s", "fraction")
# Other numbers differ by line, and other characters may not be seen on a terminal.
_VARYING = re.compile(r"\d+|[^ -~]+")
_NUMBERS = re.compile(r"\d[\d.,]*(?:e[-+]?\d+)?")
_ANY = r"\d[-+\d.,e]*"
_OF_STEP = re.compile(r"\b(?:step|iter|batch)")
_LOSS = re.compile(r"(?:.{0,60} )?loss")
_ACCURACY = re.compile(r"(?:.{0,60} )?acc(?:uracy)?")
_TIME = re.compile(r"(?:.{0,60} )?(?:time|dt|took|takes|duration|elapsed|latency|in|t)")
_OTHER_TIME = re.compile(
    r"total|elapsed|wall|eta|remaining|left|load|data|eval|\bval|test|compil|init"
)
_SETTING = re.compile(r"\b(?:lr|learning|rate|norm|version|mem|memory|scale|momentum|err|error)\b")
# A line of a loop recurs; of a longer one only the start is kept.
_RECURRING, _LONGEST = 3, 600
_RATE = re.compile(r"(?:.{0,60} )?(?:throughput|speed|ips|rate|fps|samples|images|imgs|tokens|tps)")
# The first of these that a log has is what a scaling study needs most.
_ORDER = ("step_time", "epoch_time", "samples_per_second", "tokens_per_second", "loss", "accuracy")
_OF_ALL = re.compile(r" ?[A-Za-z/]{0,12} ?(?:elapsed|remaining|left|in total)\b")


class Suggestion(NamedTuple):
    """A line, by its number from 1, and a pattern that reads `value` in it as `metric`.

    `value` is in the unit of the metric; `option` is the pattern as an option of the command line.
    """

    line: int
    text: str
    metric: str
    value: float
    pattern: LogPattern
    option: str

    @property
    def words(self) -> str:
        """The line, what the number in it may be, and the option that reads it so."""
        unit = UNITS[self.metric]
        meaning = f"{self.metric} = {self.value:g}{'' if unit in _NO_UNIT else f' {unit}'}"
        text = readable(self.text[:_SHOWN].strip())
        # Of one rank by default; a rate that rank 0 prints is often that of the job.
        whose = " (of the whole job: --scope global)" if self.metric in RATES.values() else ""
        return f"if {text!r} is {meaning}: --pattern {shlex.quote(self.option)}{whose}"


def suggested_for(paths: Iterable[Path]) -> tuple[Path, list[Suggestion]] | None:
    """Return the first of these logs that has suggestions, with these; None if none has."""
    for path in paths:
        try:
            with open_log(path) as stream:
                parts = (memoryview(block.data)[: block.end] for block in blocks(stream))
                lines = (line for part in parts for line in bytes(part).splitlines())
                if found := suggestions(lines):
                    return path, found
        except LogParseError:
            # Reported by the reader of the log.
            continue
    return None


def suggestions(lines: Iterable[bytes]) -> list[Suggestion]:
    """Return one suggestion for each of at most three metrics, from its most frequent form.

    Without a time or a rate, the first number with a point in the lines that recur most may be one.
    """
    forms: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], Suggestion] = {}
    recurring: Counter[str] = Counter()
    seen: dict[str, tuple[int, str]] = {}
    for number, raw in enumerate(islice(lines, MOST_LINES), start=1):
        text = Line(raw).text
        form_of_line = _VARYING.sub("0", text[:_LONGEST])
        recurring[form_of_line] += 1
        seen.setdefault(form_of_line, (number, text[:_LONGEST]))
        for found in _of_line(number, text):
            form = (found.metric, found.pattern.regex)
            forms[form] += 1
            first.setdefault(form, found)
    best: dict[str, Suggestion] = {}
    for form, _ in forms.most_common():
        best.setdefault(form[0], first[form])
    if best.keys() <= {"loss", "accuracy"}:
        for line, count in recurring.most_common():
            if count >= _RECURRING and (found_in_line := _first_number(*seen[line])):
                best["step_time"] = found_in_line
                break
    return [best[metric] for metric in _ORDER if metric in best][:_MOST]


def _first_number(number: int, text: str) -> Suggestion | None:
    """Return a suggestion that takes the first number with a point for the time of a step."""
    for item in quantities(text):
        other = any(one.search(item.words) for one in (_LOSS, _ACCURACY, _OTHER_TIME, _SETTING))
        if "." in item.text and not (item.unit or other):
            start = text.find(item.text)
            if pattern := _pattern(text, start, item, "step_time", 1.0):
                option = f"step_time={pattern.regex.replace('?P<step_time>', '', 1)}"
                return Suggestion(number, text, "step_time", item.value, pattern, option)
    return None


def _of_line(number: int, text: str) -> Iterator[Suggestion]:
    found = [with_unit_of_key(item) for item in quantities(text)]
    position = 0
    for item in found:
        start = text.find(item.text, position)
        position = start + len(item.text)
        metric, factor = _meaning(item, found)
        if _OF_ALL.match(text, position):
            continue
        if metric and start >= 0 and (pattern := _pattern(text, start, item, metric, factor)):
            unit = {1e-3: "[ms]", 60.0: "[min]"}.get(factor, "")
            option = pattern.regex.replace(f"?P<{metric}>", "", 1)
            value = item.value * factor
            yield Suggestion(number, text, metric, value, pattern, f"{metric}{unit}={option}")


def _meaning(item: Quantity, line: Sequence[Quantity]) -> tuple[str, float]:
    """Return the likely metric of a number and the factor to its unit; empty for any other."""
    words, unit, value = item.words, item.unit, item.value
    metric = RATES.get(unit, "")
    if unit in SECONDS or (not unit and _TIME.fullmatch(words)):
        named = " ".join(one.words for one in line)
        is_epoch = "epoch" in named and not _OF_STEP.search(named)
        metric = "epoch_time" if is_epoch else "step_time"
        return "" if _OTHER_TIME.search(words) else metric, SECONDS.get(unit, 1.0)
    if not unit and _LOSS.fullmatch(words):
        metric = "loss"
    elif not unit and _ACCURACY.fullmatch(words) and 0 <= value <= 1:
        metric = "accuracy"
    elif not unit and _RATE.fullmatch(words) and value > 0:
        of_tokens = "tok" in words or "tps" in words
        metric = "tokens_per_second" if of_tokens else "samples_per_second"
    return metric, 1.0


def _pattern(
    text: str, start: int, item: Quantity, metric: str, factor: float
) -> LogPattern | None:
    """Return a pattern with the text around a number, if it reads just this number there."""
    before = _VARYING.split(text[max(0, start - _CONTEXT) : start])[-1]
    end = start + len(item.text)
    after = _VARYING.split(text[end : end + _CONTEXT])[0]
    digits = r"[-+\d.,e]+" if "," in item.text else r"[-+\d.e]+"
    # A time without a word of its own needs the words before the last numbers.
    parts = [re.escape(part) for part in _NUMBERS.split(text[:start])]
    longer = [_ANY.join(parts[-count:]) for count in (2, 3) if len(parts) >= count]
    before, after = re.escape(before), re.escape(after)
    for left, right in product((before, *filter(str.isascii, longer)), ("", after)):
        regex = f"{left}(?P<{metric}>{digits}){right}".replace("\\ ", " ")
        scale = {} if factor == 1 else {metric: factor}
        pattern = LogPattern(regex=regex, scope="per_rank", scale=scale)
        if len(literal_of(regex).encode()) >= _SHORTEST_LITERAL:
            hits = UserPattern(pattern).read(Line(text.encode()))
            if len(hits) == 1 and isclose(hits[0].value, item.value * factor):
                return pattern
    return None
