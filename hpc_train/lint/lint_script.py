"""Apply the rules to a script; the findings depend only on the script and its context."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from hpc_train.errors import UnknownNameError
from hpc_train.lint.job_script import JobScript, read_script
from hpc_train.lint.rule import Edit, LintContext, LintRule, Subject
from hpc_train.lint.rules import all_rules
from hpc_train.model.finding import LintFinding
from hpc_train.model.value import Value

# Each round of edits may enable a fix of another rule; no script needs many.
_ROUNDS = 5
# Limits on the findings of one rule and on the length of a message.
_MOST = 200
_LONGEST = 400


class Repair(Value, frozen=True, kw_only=True):
    """A text with the fixes, and the fixed findings."""

    text: str
    mended: tuple[LintFinding, ...]


def chosen_rules(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[LintRule, ...]:
    """Return the rules with these ids or prefixes of ids; without `select`, all but `ignore`.

    Raises:
        UnknownNameError: no rule's id has this prefix.
    """
    rules = all_rules()
    select = tuple(select)
    wanted = _matching(rules, select) if select else {rule.id for rule in rules}
    if not wanted:
        raise UnknownNameError("rule", " ".join(select), [rule.id for rule in rules])
    unwanted = _matching(rules, ignore)
    return tuple(rule for rule in rules if rule.id in wanted - unwanted)


def _matching(rules: tuple[LintRule, ...], words: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for word in (part.upper() for text in words for part in re.split(r"[\s,]+", text) if part):
        ids = {rule.id for rule in rules if re.match(r"HT\d*$", word) and rule.id.startswith(word)}
        if not ids:
            raise UnknownNameError("rule", word, [rule.id for rule in rules])
        found |= ids
    return found


def lint_script(
    text: str, context: LintContext | None = None, rules: tuple[LintRule, ...] | None = None
) -> tuple[LintFinding, ...]:
    """Check a script; findings come in the order of lines, then of ids."""
    found = _examine(text, context or LintContext(), all_rules() if rules is None else rules)
    return tuple(finding for finding, _ in found)


def repair_script(
    text: str, context: LintContext | None = None, rules: tuple[LintRule, ...] | None = None
) -> Repair:
    """Apply all fixes that do not change the purpose of the script."""
    chosen = all_rules() if rules is None else rules
    mended: list[LintFinding] = []
    for _ in range(_ROUNDS):
        found = _examine(text, context or LintContext(), chosen)
        edits = [(finding, edit) for finding, edit in found if edit is not None]
        changed = _applied(text, [edit for _, edit in edits])
        if changed == text:
            break
        mended += [finding for finding, _ in edits]
        text = changed
    return Repair(text=text, mended=tuple(dict.fromkeys(mended)))


def _applied(text: str, edits: Iterable[Edit]) -> str:
    """Return the text after the edits; what no edit touches stays byte for byte.

    An edit whose `before` is not there any more is left out.
    """
    edits = tuple(edits)
    lines = text.split("\n")
    # A whole line may be inserted: from the last line up, so that the numbers stay right.
    for edit in sorted(edits, key=lambda edit: -edit.line):
        if edit.line:
            line = lines[edit.line - 1]
            lines[edit.line - 1] = line.replace(edit.before, edit.after, 1)
    text = "\n".join(lines)
    for edit in edits:
        if edit.line == 0:
            text = text.replace(edit.before, edit.after)
    return text


def _examine(
    text: str, context: LintContext, rules: tuple[LintRule, ...]
) -> list[tuple[LintFinding, Edit | None]]:
    script = read_script(text, context.site)
    suppressions = read_suppressions(script)
    subject = Subject(script=script, context=context)
    found = {
        (finding.line, finding.id, finding.message): (finding, edit)
        for rule in rules
        for finding, edit in _findings(rule, subject)
        if not suppressions.covers(finding.id, finding.line)
    }
    return [found[key] for key in sorted(found)]


def _findings(rule: LintRule, subject: Subject) -> Iterator[tuple[LintFinding, Edit | None]]:
    of_pbs = subject.script.pbs is not None and not subject.script.directives
    for hit in islice(rule.check(subject), _MOST):
        advice = hit.advice or rule.advice
        finding = LintFinding(
            id=rule.id,
            severity=hit.severity or rule.severity,
            line=hit.line,
            # A message quotes the script, whose bytes need not be text.
            message=_short(hit.message).encode("utf-8", "backslashreplace").decode("utf-8"),
            advice=in_words_of_pbs(advice) if of_pbs else advice,
        )
        yield finding, hit.edit


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"


# Longer texts first: a shorter one may be a part of them.
_WORDS = (
    (
        '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        '$(head -n 1 "$PBS_NODEFILE")',
    ),
    ("srun --ntasks-per-node=1 torchrun", "mpiexec -n NODES --ppn 1 torchrun"),
    ("srun --cpu-bind=none --cpus-per-task=", "mpiexec --cpu-bind none --depth="),
    ("SLURM_JOB_ID % 4000", "${PBS_JOBID%%[!0-9]*} % 4000"),
    ("$SLURM_SUBMIT_DIR", "$PBS_O_WORKDIR"),
    ("$SLURM_NODEID", "${PALS_RANKID:-$OMPI_COMM_WORLD_RANK}"),
    ("$SLURM_NNODES", "$(sort -u $PBS_NODEFILE | wc -l)"),
    ("$SLURM_NTASKS", "$(wc -l <$PBS_NODEFILE)"),
    ("$SLURM_CPUS_PER_TASK", "$NCPUS"),
    ("srun …", "mpiexec …"),
    ("srun bash", "mpiexec bash"),
    ("before srun", "before mpiexec"),
)


def in_words_of_pbs(advice: str) -> str:
    """Replace the commands and variables of Slurm by those of a job of PBS."""
    for slurm, pbs in _WORDS:
        advice = advice.replace(slurm, pbs)
    return advice


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
