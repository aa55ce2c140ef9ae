"""Comments that suppress a rule: `# hpctrain: ignore HT303`, `# hpctrain: ignore-file HT303`."""

from __future__ import annotations

import re

from hpc_train.lint.job_script import JobScript
from hpc_train.model.value import Value

_COMMENT = re.compile(r"#\s*hpctrain:\s*(ignore(?:-file)?)\b[ \t:]*((?:HT\d+[ \t,]*)*)")
_ALL = ""


class Suppression(Value, frozen=True, kw_only=True):
    """The rules suppressed in the whole file, and on single lines; an empty id means every rule."""

    everywhere: frozenset[str]
    lines: dict[int, frozenset[str]]

    def covers(self, rule: str, line: int) -> bool:
        """Return whether a rule's finding on a line is suppressed."""
        here = self.lines.get(line, frozenset())
        return bool({rule, _ALL} & (self.everywhere | here))


def read_suppressions(script: JobScript) -> Suppression:
    """Read the comments; a comment on its own line applies to the next line of code."""
    everywhere: set[str] = set()
    lines: dict[int, set[str]] = {}
    spans, targets = _spans(script), _targets(script.lines)
    for number, line in enumerate(script.lines, 1):
        match = _COMMENT.search(line)
        if match is None:
            continue
        rules = set(re.findall(r"HT\d+", match[2])) or {_ALL}
        if match[1] == "ignore-file":
            everywhere |= rules
            continue
        for covered in spans.get(targets[number - 1], (targets[number - 1],)):
            lines.setdefault(covered, set()).update(rules)
    return Suppression(
        everywhere=frozenset(everywhere),
        lines={number: frozenset(rules) for number, rules in lines.items()},
    )


def _targets(lines: tuple[str, ...]) -> list[int]:
    """Return, for each line, the line to which a comment on it applies: itself, or the next "
    "code."""
    targets: list[int] = []
    following = len(lines)
    for number in range(len(lines), 0, -1):
        line = lines[number - 1]
        alone = re.match(r"^\s*#\s*hpctrain:", line) is not None
        targets.append(following if alone else number)
        if line.strip() and not alone:
            following = number
    return targets[::-1]


def _spans(script: JobScript) -> dict[int, range]:
    """Map each line to all lines of its command."""
    spans: dict[int, range] = {}
    for command in script.commands:
        span = range(command.line, command.last_line + 1)
        for line in span:
            if len(spans.get(line, ())) < len(span):
                spans[line] = span
    return spans
