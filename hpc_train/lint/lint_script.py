"""Apply the rules to a script; the findings depend only on the script and its context."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from hpc_train.base.errors import UnknownNameError
from hpc_train.base.values import LintFinding
from hpc_train.lint.rule import Edit, LintContext, LintRule, Subject
from hpc_train.lint.rules import all_rules
from hpc_train.lint.script import JobScript, read_script

# Each round of edits may enable a fix of another rule; no script needs many.
_ROUNDS = 5
# Limits on the findings of one rule and on the length of a message.
_MOST = 200
_LONGEST = 400


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
) -> tuple[str, tuple[LintFinding, ...]]:
    """Apply all fixes that do not change the purpose; return the text and the fixed findings."""
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
    return text, tuple(dict.fromkeys(mended))


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
    suppressed = suppressions(script)
    subject = Subject(script=script, context=context)
    every = [one for rule in rules for one in _findings(rule, subject)]
    for inner, first, expands in _submitted(script):
        subject = Subject(script=read_script(inner, context.site), context=context)
        for finding, _ in (one for rule in rules for one in _findings(rule, subject)):
            # The outer shell expands variables in the directives.
            if not (expands and finding.id == "HT010"):
                every.append((replace(finding, line=first + finding.line - 1), None))
    found = {
        (finding.line, finding.id, finding.message): (finding, edit)
        for finding, edit in every
        if not suppressed(finding.id, finding.line)
    }
    return [found[key] for key in sorted(found)]


def _submitted(script: JobScript) -> Iterator[tuple[str, int, bool]]:
    """Yield the here-documents with directives: text, first line, whether the shell expands it."""
    for document in script.documents:
        body = document.body if document.quoted else document.body.replace("\\$", "$")
        if body.startswith("#!") and re.search(r"^#(?:SBATCH|PBS) ", body, re.MULTILINE):
            yield body, document.line, not document.quoted


def _findings(rule: LintRule, subject: Subject) -> Iterator[tuple[LintFinding, Edit | None]]:
    words = _WORDS if subject.script.only_pbs else ()
    for hit in islice(rule.check(subject), _MOST):
        advice, message = hit.advice or rule.advice, hit.message
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST - 1]}…"
        for slurm, pbs in words:
            advice = advice.replace(slurm, pbs)
        finding = LintFinding(
            id=rule.id,
            severity=hit.severity or rule.severity,
            line=hit.line,
            # A message quotes the script, whose bytes need not be text.
            message=message.encode("utf-8", "backslashreplace").decode("utf-8"),
            advice=advice,
        )
        yield finding, hit.edit


# Commands and variables of Slurm -> those of a job of PBS.
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


_COMMENT = re.compile(r"#\s*hpctrain:\s*(ignore(?:-file)?)\b[ \t:]*((?:HT\d+[ \t,]*)*)")
_ALL = ""


def suppressions(script: JobScript) -> Callable[[str, int], bool]:
    """Read the comments; the result tells whether they cover the finding of a rule on a line.

    A comment on its own line applies to the next line of code, and to the whole command there.
    """
    covered: dict[int, set[str]] = {}
    spans: dict[int, range] = {}
    for command in script.commands:
        span = range(command.line, command.last_line + 1)
        spans |= {line: span for line in span if len(spans.get(line, ())) < len(span)}
    following = len(script.lines)
    for number in range(len(script.lines), 0, -1):
        line = script.lines[number - 1]
        alone = re.match(r"^\s*#\s*hpctrain:", line) is not None
        target = following if alone else number
        if line.strip() and not alone:
            following = number
        match = _COMMENT.search(line)
        if match is None:
            continue
        rules = set(re.findall(r"HT\d+", match[2])) or {_ALL}
        for one in (0,) if match[1] == "ignore-file" else spans.get(target, (target,)):
            covered.setdefault(one, set()).update(rules)
    none: set[str] = set()
    return lambda rule, line: bool({rule, _ALL} & (covered.get(0, none) | covered.get(line, none)))
