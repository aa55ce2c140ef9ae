"""Rules on the header of a script: the #! line and the form of the directives."""

import difflib
import re
from collections.abc import Iterator

from hpc_train.lint.directives import MARKER, is_template_line
from hpc_train.lint.rule import Edit, RuleHit, Subject, rule
from hpc_train.lint.script import JobScript

_LIKE_MARKER = re.compile(r"^(\s*)#([ \t]*)([A-Za-z]{3,8})(?=[\s-])(\s*-.*)$")
_OF_SCRIPT = re.compile(r"\.(sh|sbatch|slurm|job)\b")
_DASHES = re.compile(r"(?<=\s)-?[\u2010-\u2015\u2212]+-?(?=[A-Za-z])")
_QUOTES = re.compile(r"[\u2018\u2019\u201c\u201d]")


@rule("HT001", "error", "no #! line", advice="write #!/bin/bash as the first line", fixable=True)
def no_shebang(subject: Subject) -> Iterator[RuleHit]:
    text = subject.script.text
    if text.startswith("#!") or not text.strip():
        return
    edit = Edit(line=1, before="", after="#!/bin/bash\n")
    later = next((number for number, line in _own_lines(subject) if line[:2] == "#!"), 0)
    if text.startswith("\ufeff"):
        yield RuleHit(
            1,
            "a byte order mark precedes #!, so sbatch does not recognise it",
            edit=Edit(line=1, before="\ufeff", after=""),
        )
    elif later:
        yield RuleHit(later, "#! is below the first line, where it is only a comment")
    elif subject.script.only_pbs:
        message = "the first line is not a #! line; PBS runs the script with the user's login shell"
        yield RuleHit(1, message, severity="warning", edit=edit)
    else:
        yield RuleHit(1, "the first line is not a #! line; sbatch rejects the script", edit=edit)


@rule(
    "HT002",
    "error",
    "#SBATCH after the first command",
    advice="move all #SBATCH lines above the first command",
)
def late_directive(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    late = [directive.line for directive in script.directives if directive.late]
    if late:
        command = _short(script.lines[script.first_command - 1].strip())
        others = f", and {len(late) - 1} more" if len(late) > 1 else ""
        # Below the whole script, beside directives that count, they may be parked on purpose.
        end = max((one.last_line for one in script.commands), default=script.first_command)
        parked = any(script.live_directives) and late[0] > end
        yield RuleHit(
            late[0],
            f"ignored{others}: line {script.first_command} (`{command}`) is a command",
            severity="warning" if parked else None,
        )


def _own_lines(subject: Subject) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that are not the text of another script."""
    for number, line in enumerate(subject.script.lines, 1):
        if number not in subject.script.inner_lines:
            yield number, line


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


@rule(
    "HT003",
    "warning",
    "misspelled #SBATCH",
    advice="write #SBATCH at the beginning of the line, or ##SBATCH to disable the line",
    fixable=True,
)
def misspelt_marker(subject: Subject) -> Iterator[RuleHit]:
    yield from like_marker(subject, MARKER, "sbatch")


def like_marker(subject: Subject, marker: str, program: str) -> Iterator[RuleHit]:
    """Yield the lines that are almost a directive of a program."""
    script = subject.script
    for number, line in _own_lines(subject):
        match = _LIKE_MARKER.match(line)
        if match is None or line.startswith(marker):
            continue
        indent, gap, word, rest = match.groups()
        likeness = difflib.SequenceMatcher(None, word.upper(), marker[1:]).ratio()
        # `# sbatch --array=0-3 job.sh` is a remark.
        if likeness < 0.8 or (gap and word != marker[1:]) or _OF_SCRIPT.search(rest):
            continue
        found = f"{indent}#{gap}{word}"
        edit = None if gap or indent else Edit(line=number, before=found, after=marker)
        message = f"`{found.strip()}` is a comment to {program}"
        if indent and found.strip() == marker:
            message = f"an indented {marker} is a comment to {program}"
        # Beside proper directives, a gap may disable the line on purpose.
        disabled = gap and (script.directives if marker == MARKER else script.pbs)
        yield RuleHit(number, message, edit=edit, severity="info" if disabled else None)


_OTHERS = (
    (re.compile(r"#BSUB\s"), "LSF (bsub)"),
    (re.compile(r"#\s?flux:", re.IGNORECASE), "Flux"),
    (re.compile(r"#\$\s+-"), "Grid Engine"),
    (re.compile(r"#OAR\s"), "OAR"),
    (re.compile(r"#PJM\s"), "Fujitsu TCS (pjsub)"),
    (re.compile(r"#COBALT\s"), "Cobalt"),
    (re.compile(r"#MSUB\s"), "Moab"),
)


def other_system(script: JobScript) -> tuple[int, str]:
    """Return the first directive of a batch system that is not checked, and its name."""
    own = script.directives or script.pbs
    for number, line in () if own else enumerate(script.lines, 1):
        for pattern, name in _OTHERS:
            if pattern.match(line) and number not in script.inner_lines:
                return number, name
    return 0, ""


@rule(
    "HT025",
    "info",
    "script of a batch system that is not checked",
    advice="check the directives with the system itself",
)
def not_checked(subject: Subject) -> Iterator[RuleHit]:
    line, name = other_system(subject.script)
    if name:
        yield RuleHit(line, f"this is a script of {name}, whose directives hpctrain does not check")


@rule(
    "HT005",
    "error",
    "DOS line breaks",
    advice="convert the file: dos2unix FILE, or hpctrain lint --fix FILE",
    fixable=True,
)
def dos_line_breaks(subject: Subject) -> Iterator[RuleHit]:
    text = subject.script.text
    if "\r\n" in text:
        count = text.count("\r\n")
        line = text[: text.index("\r\n")].count("\n") + 1
        edit = Edit(line=0, before="\r\n", after="\n")
        plural = "s" if count > 1 else ""
        yield RuleHit(line, f"{count} DOS line break{plural} (\\r\\n)", edit=edit)


@rule("HT006", "error", "nothing to run", advice="add the command that starts the training")
def nothing_to_run(subject: Subject) -> Iterator[RuleHit]:
    if not subject.script.text.strip():
        yield RuleHit(1, "the file is empty")
    elif subject.script.first_command == 0 and not any(map(is_template_line, subject.script.lines)):
        yield RuleHit(1, "the script has only comments and no command")


@rule(
    "HT007",
    "error",
    "typographic dash or quote in a directive",
    advice="retype the line with hyphens and straight quotes",
    fixable=True,
)
def typographic(subject: Subject) -> Iterator[RuleHit]:
    for directive in subject.script.live_directives:
        text = directive.text.partition("#")[0]
        dash = _DASHES.search(text)
        if dash:
            edit = Edit(line=directive.line, before=dash[0], after="--")
            yield RuleHit(directive.line, f"`{dash[0]}` is a dash, not a hyphen", edit=edit)
        elif _QUOTES.search(text):
            yield RuleHit(directive.line, "curved quotes become part of the value")


@rule(
    "HT009",
    "error",
    "unterminated quote, parenthesis or here-document",
    advice="close it; the cause can be an earlier quote that ends too soon (try bash -n FILE)",
)
def unclosed(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.unclosed[:1]:
        yield RuleHit(found.line, f"{found.opening} is never closed")


_JOB_ID = re.compile(r"(?<!%)%\d{0,3}[jAJ]")
# `7`, `7-7`, `7%1`
_ONE_ELEMENT = re.compile(r"(\d{1,9})(?:-\1)?(?:[:%]\d{1,9})*")


@rule(
    "HT019",
    "warning",
    "log folder created by the job",
    advice="create the folder before sbatch, or write the log into an existing folder",
)
def late_log_folder(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    for name in ("output", "error"):
        folder = (asked.value(name) or "").rpartition("/")[0]
        if _JOB_ID.search(folder):
            message = f"{folder} contains the job id, so it cannot exist before the job"
            yield RuleHit(asked.line(name), message)
            return
        if not folder or "%" in folder:
            continue
        for command in subject.script.runs("mkdir"):
            if folder in [word.text.rstrip("/").removeprefix("./") for word in command.words]:
                line = asked.line(name)
                yield RuleHit(line, f"{folder} is created in line {command.line}: too late")
                return


@rule(
    "HT111",
    "warning",
    "elements of a job array write to one log",
    advice="write --output=…-%A_%a.out",
)
def array_log(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    for name in ("output", "error"):
        value = asked.value(name) or ""
        single = _ONE_ELEMENT.fullmatch(asked.value("array") or "")
        if asked.has("array") and not single and value and not value.startswith("/dev/"):
            if not any(pattern in value for pattern in ("%a", "%j", "%J")):
                yield RuleHit(asked.line(name), f"--{name}={value} has no %a")


@rule(
    "HT112",
    "warning",
    "requeue without --open-mode=append",
    advice="add #SBATCH --open-mode=append",
)
def requeue_truncates(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    asked = script.asked
    if asked.has("open-mode") or asked.value("output") == "/dev/null":
        return
    if asked.has("requeue"):
        yield RuleHit(asked.line("requeue"), "--requeue erases the log of each attempt")
        return
    for command in (*script.runs("scontrol"), *script.task_commands):
        if asked.batch and [word.text for word in command.words[:2]] == ["scontrol", "requeue"]:
            yield RuleHit(command.line, "the requeued job erases its log")
            return
