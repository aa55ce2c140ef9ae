"""Rules on how a script ends: exit codes, signals, requeue."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice, pairwise

from hpc_train.base.shell import Command, read_commands
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import JobScript, rank_launches

_WAIT = (
    "wait for each process by its id: srun … & pids+=($!), then "
    'for pid in "${pids[@]}"; do wait "$pid" || code=1; done; exit "${code:-0}"'
)
_TALK = ("echo", "date", "printf", "sleep", "ls", "nvidia-smi", "deactivate")


def _runs_in_front(script: JobScript) -> Iterator[Command]:
    """Yield the launches without `&` behind them, their pipeline, or the group around them."""
    lines = [line.strip() for line in script.lines]
    ends = [n for n, line in enumerate(lines) if line.startswith(("}", ")", "done"))]
    for command in (one.command for one in rank_launches(script) if one.command.inside == ""):
        at = command.last_line - 1
        while at + 1 < len(lines) and lines[at].endswith(("\\", "|")):
            at += 1
        group = ends[bisect_left(ends, at) :][:1]
        behind = (lines[at], *(lines[n] for n in group))
        if not any(line.endswith("&") and not line.endswith("&&") for line in behind):
            yield command


def _sets(script: JobScript, *flags: str) -> bool:
    """Whether the script has `set -e`, `set -o pipefail` or the like, or has the option in its #!
    line."""
    texts = [word.text for command in script.runs("set") for word in command.words[1:]]
    letters = [flag for flag in flags if len(flag) == 1]
    return (
        any(flag in texts for flag in flags if len(flag) > 1)
        or any(re.match(rf"-[a-zA-Z]*{flag}", text) for flag in letters for text in texts)
        or any(re.match(rf"#!.*\s-\w*{flag}", script.lines[0]) for flag in letters)
    )


@rule("HT401", "warning", "exit code lost in a pipeline", advice="add `set -o pipefail` before it")
def lost_in_pipe(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if _sets(script, "pipefail") or "PIPESTATUS" in script.text:
        return
    following = dict(pairwise(script.commands))
    for launch in rank_launches(script):
        command = launch.command
        if command.ending not in ("|", "|&") or command.inside:
            continue
        # `python list.py | sort` is preparation; output that is piped to tee is the training's log.
        teed = command in following and following[command].program == "tee"
        if launch.outer or launch.starter != "python" or teed:
            yield RuleHit(command.line, "the training's exit code is lost in the pipeline")


@rule(
    "HT402",
    "warning",
    "exit code replaced by the last command",
    advice="add `set -e` (a bare `wait` returns 0 regardless), or keep the code: srun …; code=$?; "
    "echo done; exit $code",
)
def replaced_by_last(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    yield from _bare_wait(script)
    outer = [command for command in script.commands if command.inside == ""]
    runs = [c for c in _runs_in_front(script) if c.ending in ("\n", ";", "")]
    if not runs or _sets(script, "e", "errexit") or re.search(r"\$\?|ERR\b|EXIT\b", script.text):
        return
    last = outer[-1]
    if last.program in _TALK and last.line > runs[-1].line and runs[-1] in outer:
        message = f"the job ends with the code of `{last.program}`, not of line {runs[-1].line}"
        yield RuleHit(last.line, message)


def _bare_wait(script: JobScript) -> Iterator[RuleHit]:
    """`wait` without arguments returns 0, regardless of the exit codes of the jobs."""
    started = [launch.line for launch in rank_launches(script) if launch.command.ending == "&"]
    waits = [command for command in script.runs("wait") if not command.inside]
    if any(len(c.words) > 1 and not c.words[1].text.startswith("-") for c in waits):
        return
    # A server that the script ends itself has no exit code to lose.
    if script.runs("kill", "pkill", "scancel"):
        return
    # An `exit` with an explicit code.
    exits = [
        c.line for c in script.runs("exit") if c.words[1:] and c.words[1].text not in ("0", "$?")
    ]
    for command in (one for one in waits if len(one.words) == 1):
        behind = any(line >= command.line for line in exits)
        if started and command.line >= started[0] and not behind:
            message = f"`wait` returns 0, regardless of the exit code of line {started[0]}"
            yield RuleHit(command.line, message, advice=_WAIT)
            return


@rule(
    "HT403",
    "warning",
    "trap that runs too late",
    advice="start it in the background and wait for it, again after each trap: srun … & pid=$!; "
    'while wait "$pid"; kill -0 "$pid" 2>/dev/null; do :; done; wait "$pid"; exit $?',
)
def late_trap(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for trap, action, signals in signal_traps(script):
        programs = {command.program for command in action_commands(action, script)} - {""}
        at_exit = any(word.text in ("EXIT", "0") for word in trap.words)
        if set(signals) <= _ENDING and programs and (at_exit or not programs & _GOING_ON):
            # It only ends processes and cleans up, at the end or after it.
            continue
        late = [run.line for run in _runs_in_front(script) if run.line > trap.line]
        if late:
            message = f"the trap of {signals[0]} waits for the command of line {late[0]}"
            yield RuleHit(trap.line, message)
        return


@rule(
    "HT404",
    "warning",
    "signal that does not reach the trap",
    advice="write --signal=B:USR1@120 for a trap in the script",
)
def signal_not_to_batch(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    value = script.asked.value("signal") or ""
    named = re.fullmatch(r"(?:R:)?(?:SIG)?([A-Z0-9]+)(?:@\d+)?", value)
    if named is None:
        return
    if any(named[1] in signals for _, _, signals in signal_traps(script)):
        line = script.asked.line("signal")
        yield RuleHit(line, f"--signal={value} does not reach the script's trap")


@rule("HT406", "warning", "$0 in a batch script", advice="write the path, or use $SLURM_SUBMIT_DIR")
def own_path(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if not script.asked.batch:
        return
    for command in script.commands:
        # The fallback for a run outside Slurm.
        tests = (block.condition for block in script.around(command))
        if any("SLURM" in text for text in (*tests, script.lines[command.line - 1])):
            continue
        for word in (*command.words, *command.assignments):
            found = {"0", "BASH_SOURCE"} & set(word.expanded)
            cut = re.search(r"\$\{(?:0|BASH_SOURCE(?:\[0\])?)%", word.raw)
            # The folder is another one; the text can be read, and submitted again.
            if found and (cut or command.program in ("dirname", "realpath", "readlink")):
                name = "BASH_SOURCE" if "BASH_SOURCE" in found else "$0"
                yield RuleHit(word.line, f"{name} is a copy in Slurm's spool folder")
                break


@rule(
    "HT407",
    "warning",
    "signal that ends torchrun",
    advice="write --signal=B:USR1@120 and a trap in the script that asks the workers to stop, or "
    "ignore it in the agent: srun … bash -c 'trap \"\" USR1; exec torchrun …'",
)
def signal_ends_torchrun(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    value = script.asked.value("signal") or ""
    named = re.fullmatch(r"(?:R:)?(?:SIG)?(USR[12]|10|12)(?:@\d*)?", value, re.IGNORECASE)
    if named is None or re.search(r"trap\s+(\"\"|''|:)|signals[-_]to[-_]handle", script.text):
        return
    for launch in islice(rank_launches(script, "torchrun", outer="srun"), 1):
        message = f"--signal={value} ends the torchrun of line {launch.starter_line}"
        yield RuleHit(script.asked.line("signal"), message)


_SIGNALS = re.compile(r"(?:SIG)?(USR1|USR2|TERM|INT|HUP|CONT)|10|12|15")
_ENDING = frozenset(("TERM", "INT", "HUP", "15"))
_GOING_ON = frozenset("scontrol sbatch qsub touch hpctrain python python3 srun".split())


def signal_traps(script: JobScript) -> Iterator[tuple[Command, str, list[str]]]:
    """Yield the traps that handle a signal: command, action, signals.

    '' ignores the signal, - restores the default.
    """
    for command in script.runs("trap"):
        texts = [word.text for word in command.words[1:] if word.text != "--"]
        signals = [text.removeprefix("SIG") for text in texts[1:] if _SIGNALS.fullmatch(text)]
        if signals and texts[0] not in ("", "-", ":"):
            yield command, texts[0], signals


def action_commands(action: str, script: JobScript) -> tuple[Command, ...]:
    """Return the commands of a trap; if it calls a function of the script, those of its body."""
    commands = read_commands(action).commands
    if len(commands) != 1 or len(commands[0].words) != 1:
        return commands
    name, body, inside = commands[0].program, list[Command](), False
    for command in script.commands:
        texts = [word.text for word in command.words]
        if inside and body and "}" in command.keywords:
            break
        if inside:
            body.append(command)
        elif texts == ["function", name] or (
            texts == [name] and "(" in (command.ending, *command.redirects)
        ):
            inside = True
    return tuple(body) or commands
