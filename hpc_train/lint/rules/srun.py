"""Rules on srun: environment, binding and termination."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.option_parser import Option
from hpc_train.lint.option_values import is_unknown, srun_value_forms
from hpc_train.lint.plugin_options import with_plugins
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.directive_syntax import NO_LIMIT, unknown_names
from hpc_train.lint.rules.option_values import ambiguities, missing_or_extra, refusals
from hpc_train.lint.rules.rank_and_node_counts import rank_launches, starts_several, tasks_of
from hpc_train.lint.shell.ast import Command, Word
from hpc_train.model.finding import Severity
from hpc_train.model.units import slurm_seconds
from hpc_train.slurm_options import srun_grammar
from hpc_train.slurm_versions import slurm_versions

_MPI_PROGRAM = re.compile(r"\b(?:mpi4py|horovod|backend[= ]mpi)\b", re.IGNORECASE)
_WITH_ARGUMENTS = ("bash", "sh", "torchrun", "accelerate", "deepspeed", "python", "python3")


def _sruns(script: JobScript) -> Iterator[LaunchCommand]:
    """Yield the launches of training by srun whose options are all visible."""
    for launch in rank_launches(script):
        if launch.outer == "srun" and not launch.opaque:
            yield launch


@rule(
    "HT201",
    "warning",
    "srun without --cpus-per-task",
    why="srun of Slurm 22.05 and 23.02 does not inherit --cpus-per-task from the job: each "
    "rank gets one core, and its threads and data loaders share it. If --slurm or the site's "
    "profile names another version, nothing is reported.",
    advice='write srun --cpus-per-task="$SLURM_CPUS_PER_TASK", which is right on every version',
)
def srun_without_cpus(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    given = ("cpus-per-task", "cpus-per-gpu", "exclusive", "cpu-bind")
    if script.sets("SRUN_CPUS_PER_TASK") or (script.asked.cpus_per_task or 1) < 2:
        return
    version = subject.context.slurm
    if version and not slurm_versions().facts["cpus-per-task-not-inherited"].covers(version):
        return
    does = "allocates" if version else "may allocate"
    for launch in _sruns(script):
        if not launch.option(*given) and script.asked.tasks_per_node != 1:
            cores = script.asked.cpus_per_task
            message = f"the job requests {cores} cores per task, this srun {does} one each"
            yield RuleHit(line=launch.line, message=message)


@rule(
    "HT203",
    "error",
    "srun in the background without wait",
    why="The job ends with its script: without wait the script ends at once, and Slurm kills "
    "the steps that still run.",
    advice='keep the process id and wait for it: srun … & pid=$!; wait "$pid"',
)
def background_without_wait(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if any(command.program == "wait" for command in script.commands):
        return
    # Another command in the foreground may take longer.
    long = max((c.line for c in script.commands if _takes_long(c)), default=0)
    for command in script.commands:
        if command.program in ("srun", "mpirun", "torchrun") and command.ending == "&":
            if long <= command.last_line:
                message = f"{command.program} … & without a wait after it"
                yield RuleHit(line=command.line, message=message)


def _takes_long(command: Command) -> bool:
    short = ("echo", "date", "exit", "done", "fi", "}", "export", "", "printf", "set")
    if command.program == "sleep":
        # A few seconds let a server start; hours, or a variable, are the job itself.
        return not all(re.fullmatch(r"[\d.]{1,3}s?", word.text) for word in command.words[1:])
    return command.program not in short


@rule(
    "HT204",
    "info",
    "variables set with srun --export",
    why="srun --export=ALL,NAME=value does not replace a NAME that is already set, and cuts "
    "the value at a comma.",
    advice="export the variable on a line of its own before srun",
)
def export_of_values(subject: Subject) -> Iterator[RuleHit]:
    for launch in subject.script.launches:
        option = launch.option("export")
        if option and re.match(r"^ALL,.*=", option.value or "") and launch.outer == "srun":
            yield RuleHit(
                line=option.line, message=f"--export={option.value} may not set these values"
            )


@rule(
    "HT205",
    "warning",
    "srun --export without ALL",
    why="--export=NAME=value replaces the whole environment of the ranks: PATH, LD_LIBRARY_PATH "
    "and the variables that modules and conda set are lost.",
    advice="export the variable on a line of its own before srun, and remove --export",
)
def export_without_all(subject: Subject) -> Iterator[RuleHit]:
    for launch in subject.script.launches:
        option = launch.option("export")
        value = option.value if option else None
        if option and value and launch.outer == "srun":
            if (
                not {"ALL", "NIL", "NONE"} & set(value.split(","))
                and "$" not in value.partition("=")[0]
            ):
                yield RuleHit(
                    line=option.line, message=f"--export={value} drops all other variables"
                )


@rule(
    "HT206",
    "warning",
    "--export=NONE reaches srun",
    why="sbatch --export=NONE sets SLURM_EXPORT_ENV=NONE, so that srun does not pass on the "
    "variables that the script itself exports.",
    advice="add `export SLURM_EXPORT_ENV=ALL` before srun",
)
def export_none(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    unset = any("SLURM_EXPORT_ENV" in [w.text for w in c.words] for c in script.runs("unset"))
    if script.asked.value("export") != "NONE" or script.sets("SLURM_EXPORT_ENV") or unset:
        return
    for launch in _sruns(script):
        if not launch.option("export"):
            line = script.asked.line("export")
            yield RuleHit(
                line=line,
                message="--export=NONE: srun does not pass on the script's exported variables",
            )
            return


@rule(
    "HT207",
    "info",
    "srun without --mpi",
    why="When the cluster's MpiDefault is none, a program of Open MPI or MPICH that srun "
    "starts aborts, or every rank runs as a separate job of size 1.",
    advice="write srun --mpi=pmix (`srun --mpi=list` lists the available types)",
)
def srun_without_mpi(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    site = subject.context.site
    kind = site.launchers.mpi if site else None
    # Ranks without MPI need no --mpi, whatever the profile states.
    uses = any(
        found.name.startswith(("OMPI_MCA_", "MPICH_", "PMIX_MCA_")) for found in script.assignments
    )
    # torch connects ranks by MASTER_ADDR.
    by_address = script.sets("MASTER_ADDR") and not _MPI_PROGRAM.search(script.text)
    if not uses or by_address or kind == "none" or script.sets("SLURM_MPI_TYPE"):
        return
    for launch in _sruns(script):
        # The workers of torchrun are not started by srun.
        if not launch.option("mpi") and launch.starter != "torchrun":
            wanted = f"; the site's profile has --mpi={kind}" if kind else ""
            yield RuleHit(line=launch.line, message=f"no --mpi: MpiDefault applies{wanted}")


@rule(
    "HT208",
    "error",
    "mpirun below srun",
    why="srun starts one mpirun for each task, and each of them starts all ranks, or fails because "
    "its slots are in use.",
    advice="use one of them: srun PROGRAM, or mpirun PROGRAM",
)
def mpirun_below_srun(subject: Subject) -> Iterator[RuleHit]:
    for launch in subject.script.launches:
        tasks = tasks_of(launch, subject.script)
        if (
            launch.outer == "srun"
            and launch.starter == "mpirun"
            and tasks is not None
            and tasks > 1
        ):
            yield RuleHit(line=launch.line, message=f"srun starts mpirun {tasks} times")


def _is_command(word: Word) -> bool:
    """Whether a quoted word is a program and its arguments; `/My Tools/run` is a program alone."""
    program, _, rest = word.text.partition(" ")
    if word.raw[:1] not in ("'", '"') or " " not in word.raw or not (program and rest):
        return False
    if "$" in program or "$(" in rest or "`" in rest:
        return False
    return program in _WITH_ARGUMENTS or program.endswith((".sh", ".py")) or "/" not in rest


@rule(
    "HT210",
    "error",
    "program and arguments in one word",
    why="srun looks for a program whose name is the whole quoted word, with its blanks, and fails "
    "(execve: No such file or directory).",
    advice="remove the quotes around the whole command, or start it through a shell: "
    "srun bash -c 'PROGRAM ARGUMENTS'",
)
def command_in_one_word(subject: Subject) -> Iterator[RuleHit]:
    for launch in subject.script.launches:
        if launch.outer != "srun" or not launch.words:
            continue
        word = launch.words[0]
        if _is_command(word):
            message = f"srun takes {word.text!r} for the name of a program"
            yield RuleHit(line=word.line, message=message)


def _options(subject: Subject) -> Iterator[Option]:
    """Yield the options of srun commands whose names the shell does not change."""
    for launch in subject.script.launches:
        if launch.outer == "srun":
            yield from (one for one in launch.options if not is_unknown(one.spelled))


@rule(
    "HT211",
    "error",
    "value that srun refuses",
    why="srun checks these values before it starts a step and exits: no rank starts.",
    advice="write one of the allowed values; `man srun` explains them",
)
def refused(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        # An empty value may be a placeholder, --nodes=<n>, that the shell takes for a redirection.
        if option.known and option.value != "":
            yield from missing_or_extra(option, "srun", srun_grammar())
            yield from refusals(option, "srun", srun_value_forms())
            yield from _unreadable_time(option)


def _unreadable_time(option: Option) -> Iterator[RuleHit]:
    value = option.value or ""
    if option.name not in ("time", "time-min") or not value or is_unknown(value):
        return
    if slurm_seconds(value) is None and value.upper() not in NO_LIMIT:
        yield RuleHit(
            line=option.line,
            message=f"srun cannot parse {value!r} as a time",
            advice="write hours:minutes:seconds, e.g. --time=04:00:00",
        )


@rule(
    "HT212",
    "warning",
    "unknown or ambiguous option of srun",
    why="srun exits at an option that neither Slurm nor a plug-in of the site defines, and at the "
    "beginning of a name that fits several options.",
    advice="write the whole name; `srun --help` lists all options, including those of the site's "
    "plug-ins, which a site profile declares in plugin_options",
)
def unknown(subject: Subject) -> Iterator[RuleHit]:
    site = subject.context.site
    known = with_plugins(srun_grammar(), site).long
    for option in _options(subject):
        yield from unknown_names(option, known, site)
        for hit in ambiguities(option):
            yield replace(hit, severity="error")


# A job that is shorter ends before anyone looks at it.
_SHORT_S = 600
_GPUS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")
_COLLECTIVES = re.compile(
    r"torch|nccl|rccl|cuda|rocm|nvidia|accelerate|deepspeed|megatron|lightning|MASTER_ADDR",
    re.IGNORECASE,
)
_MPI = re.compile(r"mpi4py|[-_]mpi\.py|\bmpi[-_]", re.IGNORECASE)


@rule(
    "HT202",
    "warning",
    "srun without --kill-on-bad-exit",
    why="When one rank fails, the other ranks hang in their next collective, and srun waits for "
    "them until the time limit. MPI itself ends the ranks of most of its programs.",
    advice="write srun --kill-on-bad-exit=1 (add --wait=60 for ranks that end early with 0)",
)
def no_kill_on_bad_exit(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.sets("SLURM_KILL_BAD_EXIT"):
        return
    for launch in rank_launches(script):
        if launch.outer != "srun" or launch.opaque or launch.option("kill-on-bad-exit"):
            continue
        if starts_several(launch, script):
            hangs = _trains(launch, script) and not _is_short(script)
            severity: Severity | None = None if hangs else "info"
            yield RuleHit(line=launch.line, message="no --kill-on-bad-exit", severity=severity)


def _is_short(script: JobScript) -> bool:
    seconds = slurm_seconds(script.asked.value("time") or "")
    return seconds is not None and 0 < seconds < _SHORT_S


def _trains(launch: LaunchCommand, script: JobScript) -> bool:
    """Whether the ranks depend on each other without MPI, as those of PyTorch do."""
    if launch.starter != "python" or _COLLECTIVES.search(script.text) or not script.asked.batch:
        return True
    return _has_gpus(launch, script) and _MPI.search(script.text) is None


def _has_gpus(launch: LaunchCommand, script: JobScript) -> bool:
    asked = script.asked
    words = [asked.value(name) or "" for name in ("gres", "partition", "constraint")]
    words += [option.value or "" for option in launch.options if option.name == "gres"]
    return (
        asked.has(*_GPUS)
        or launch.option(*_GPUS) is not None
        or any("gpu" in word.lower() for word in words)
    )
