"""Rules on srun and mpirun: environment, size and places of their ranks, termination."""

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

from hpc_train.base.shell import Command, Word
from hpc_train.base.slurm_options import gres, srun_grammar
from hpc_train.base.values import slurm_seconds
from hpc_train.lint.directives import (
    Option,
    gpu_count,
    is_unknown,
    share,
    srun_value_forms,
    with_plugins,
)
from hpc_train.lint.launches import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.directives import refusals, unknown_names
from hpc_train.lint.rules.header import other_system
from hpc_train.lint.script import (
    JobScript,
    nodes_of,
    rank_launches,
    starts_several,
    tasks_of,
    workers_of,
)
from hpc_train.plans.explanations import slurm_versions

_WITH_ARGUMENTS = ("bash", "sh", "torchrun", "accelerate", "deepspeed", "python", "python3")


def _sruns(script: JobScript) -> list[LaunchCommand]:
    """Return the launches of training by srun whose options are all visible."""
    return [one for one in rank_launches(script, outer="srun") if not one.opaque]


@rule(
    "HT201",
    "warning",
    "srun without --cpus-per-task",
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
            yield RuleHit(launch.line, message)


@rule(
    "HT203",
    "error",
    "srun in the background without wait",
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
                yield RuleHit(command.line, f"{command.program} … & without a wait after it")


def _takes_long(command: Command) -> bool:
    short = ("echo", "date", "exit", "done", "fi", "}", "export", "", "printf", "set")
    if command.program == "sleep":
        # A few seconds let a server start; hours, or a variable, are the job itself.
        return not all(re.fullmatch(r"[\d.]{1,3}s?", word.text) for word in command.words[1:])
    return command.program not in short


@rule(
    "HT215",
    "warning",
    "step that waits for another one",
    advice="add --overlap to the step in the background, or --exact and the GPUs of each step",
)
def waiting_step(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    apart = ("overlap", "nodelist", "relative", "nodes", "het-group", "exclude", "jobid")
    steps = [one for one in script.launches if one.outer == "srun" and not one.option(*apart)]
    waits = [command.line for command in script.runs("wait")]
    asked = script.asked
    gpus = asked.gpus
    if not asked.batch:
        return
    for first, second in pairwise(steps):
        exact = first.option("exact", "exclusive", "cpus-per-task", "mem", "mem-per-cpu")
        few = first.option("gres", "gpus", "gpus-per-node", "gpus-per-task", "tres-per-task")
        small = exact and first.option("ntasks", "ntasks-per-node") and (few or not gpus)
        if first.command.ending != "&" or small or first.opaque or second.opaque:
            continue
        if not any(first.line <= line <= second.line for line in waits):
            what = "cores and GPUs" if gpus else "cores"
            message = f"this step waits for that of line {first.line}, which uses the {what}"
            yield RuleHit(second.line, message)


@rule(
    "HT205",
    "warning",
    "srun --export without ALL",
    advice="export the variable on a line of its own before srun, and remove --export",
)
def export_without_all(subject: Subject) -> Iterator[RuleHit]:
    for launch in subject.script.launches:
        option = launch.option("export")
        value = option.value if option else None
        if not option or not value or launch.outer != "srun" or "$" in value.partition("=")[0]:
            continue
        program = launch.texts[0] if launch.words else "$"
        if value == "NONE" and "/" not in program and not program.startswith("$"):
            message = f"--export=NONE: without PATH no node finds {program}"
            yield RuleHit(option.line, message, severity="error")
        elif not {"ALL", "NIL", "NONE"} & set(value.split(",")):
            yield RuleHit(option.line, f"--export={value} drops all other variables")


@rule(
    "HT206",
    "warning",
    "--export=NONE reaches srun",
    advice="add `export SLURM_EXPORT_ENV=ALL` before srun",
)
def export_none(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    unset = any("SLURM_EXPORT_ENV" in [w.text for w in c.words] for c in script.runs("unset"))
    if script.asked.value("export") != "NONE" or script.sets("SLURM_EXPORT_ENV") or unset:
        return
    if any(not launch.option("export") for launch in _sruns(script)):
        message = "--export=NONE: srun does not pass on the script's exported variables"
        yield RuleHit(script.asked.line("export"), message)


@rule(
    "HT208", "error", "mpirun below srun", advice="use one of them: srun PROGRAM, or mpirun PROGRAM"
)
def mpirun_below_srun(subject: Subject) -> Iterator[RuleHit]:
    for launch in subject.script.launches:
        tasks = tasks_of(launch, subject.script)
        if launch.outer == "srun" and launch.starter == "mpirun" and (tasks or 0) > 1:
            yield RuleHit(launch.line, f"srun starts mpirun {tasks} times")


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
    advice="remove the quotes around the whole command, or start it through a shell: "
    "srun bash -c 'PROGRAM ARGUMENTS'",
)
def command_in_one_word(subject: Subject) -> Iterator[RuleHit]:
    for launch in subject.script.launches:
        if launch.outer != "srun" or not launch.words:
            continue
        word = launch.words[0]
        if launch.option("multi-prog") and word.text in _WITH_ARGUMENTS:
            message = f"srun --multi-prog reads {word.text} as a file with the ranks' programs"
            advice = f"leave --multi-prog out, or name a file with lines like: 0-3 {word.text} FILE"
            yield RuleHit(word.line, message, advice=advice)
        elif _is_command(word):
            yield RuleHit(word.line, f"srun reads {word.text!r} as the name of a program")


def _options(subject: Subject) -> Iterator[Option]:
    """Yield the options of srun commands whose names the shell does not change."""
    for launch in subject.script.launches:
        if launch.outer == "srun":
            yield from (one for one in launch.options if not is_unknown(one.spelled))


@rule(
    "HT211",
    "error",
    "value that srun refuses",
    advice="write one of the allowed values, a time as HH:MM:SS; `man srun` explains them",
)
def refused(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        # An empty value may be a placeholder, --nodes=<n>, that the shell takes for a redirection.
        if option.known and option.value != "":
            yield from refusals(option, "srun", srun_grammar(), srun_value_forms())


@rule(
    "HT212",
    "warning",
    "unknown or ambiguous option of srun",
    advice="write the whole name; `srun --help` lists all options, including those of the site's "
    "plug-ins, which a site profile declares in plugin_options",
)
def unknown(subject: Subject) -> Iterator[RuleHit]:
    site = subject.context.site
    known = with_plugins(srun_grammar(), site).long
    for option in _options(subject):
        yield from unknown_names(option, known, site)


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
    advice="write srun --kill-on-bad-exit=1 (add --wait=60 for ranks that end early with 0)",
)
def no_kill_on_bad_exit(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.sets("SLURM_KILL_BAD_EXIT"):
        return
    for launch in _sruns(script):
        if not launch.option("kill-on-bad-exit") and starts_several(launch, script):
            seconds = slurm_seconds(script.asked.value("time") or "")
            hangs = _trains(launch, script) and not 0 < (seconds or 0) < _SHORT_S
            yield RuleHit(launch.line, "no --kill-on-bad-exit", severity=None if hangs else "info")


def _trains(launch: LaunchCommand, script: JobScript) -> bool:
    """Whether the ranks depend on each other without MPI, as those of PyTorch do."""
    if launch.starter != "python" or _COLLECTIVES.search(script.text) or not script.asked.batch:
        return True
    asked = script.asked
    words = [asked.value(name) or "" for name in ("gres", "partition", "constraint")]
    words += [option.value or "" for option in launch.options if option.name == "gres"]
    gpus = asked.has(*_GPUS) or launch.option(*_GPUS) or any("gpu" in w.lower() for w in words)
    return bool(gpus) and _MPI.search(script.text) is None


@rule(
    "HT209",
    "error",
    "step with fewer GPUs than ranks",
    advice="omit the option, so that the step gets the GPUs of the job, or request one per rank",
)
def step_with_few_gpus(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch in _sruns(script):
        if launch.option("gpus-per-task", "het-group"):
            continue
        gpus, ranks = _gpus_of(launch, script), _ranks_on_node(launch, script)
        if gpus and ranks and ranks > gpus:
            message = f"{ranks} ranks on a node, but the step has {gpus} GPU{'s' * (gpus > 1)}"
            yield RuleHit(launch.line, message)


def _gpus_of(launch: LaunchCommand, script: JobScript) -> int | None:
    """Return the GPUs of a step on each node, if its own options say it."""
    option = launch.option("gres", "gpus-per-node", "gpus")
    value = script.values.substitute(option.value or "") if option else ""
    if option is None or not value or "$" in value:
        return None
    if option.name == "gres":
        return sum(one.count for one in gres(value) if one.name == "gpu") or None
    count, nodes = gpu_count(value), nodes_of(launch, script)
    if option.name == "gpus-per-node":
        return count
    return share(count, nodes)


def _ranks_on_node(launch: LaunchCommand, script: JobScript) -> int | None:
    if launch.starter == "accelerate":
        return workers_of(launch, script)
    if launch.starter not in ("torchrun", "python"):
        return None
    agents = share(tasks_of(launch, script), nodes_of(launch, script))
    if launch.starter == "python":
        return agents
    workers = workers_of(launch, script)
    return workers * (agents or 1) if workers else None


_BINDING = ("--bind-to", "--map-by", "-bind-to", "-map-by", "--rankfile", "-rf", "--cpu-set")
OTHER_MPI = re.compile(r"\b(impi|intel-?mpi|mpich|mvapich2?|hydra)\b|I_MPI_", re.IGNORECASE)
_OPEN_MPI = re.compile(r"open-?mpi|ompi|orte|prte|hpcx|--?mca|--bind-to|--map-by", re.IGNORECASE)
_OTHER_OPTION = re.compile(
    r"^(--?ppn|--cpu-bind|--depth|-perhost|-genv|-genvall|-env|-envall|-f|-hosts|-bootstrap|-iface)"
    r"(=|$)"
)
_STARTED = re.compile(r"(?:.{0,200}/)?(?:python[\d.]{0,9}|bash|sh|torchrun)")
# Its own words on how many ranks each host has.
OWN_PLACES = re.compile(
    r"oversubscribe|overload|ppr:|(?:^| )--?(?:host|H|npernode|N|ppn)\b", re.IGNORECASE
)


def _mpiruns(subject: Subject) -> Iterator[tuple[LaunchCommand, list[str]]]:
    """Yield the launches by Open MPI's mpirun, with its own arguments."""
    site = subject.context.site
    # The mpiexec of Cray PALS is another program.
    of_pals = site is not None and site.pbs is not None and site.pbs.starter == "pals"
    if of_pals or OTHER_MPI.search(subject.script.text) or other_system(subject.script)[1]:
        return
    for launch in subject.script.launches:
        if launch.outer != "mpirun" or len(launch.words) < 2:
            continue
        texts = list(takewhile(lambda text: not _STARTED.fullmatch(text), launch.texts))
        if not any(text == "--version" or _OTHER_OPTION.match(text) for text in texts):
            yield launch, texts


def _is_open_mpi(subject: Subject) -> bool:
    """Whether the script, or the site, names Open MPI; mpirun is also that of other MPIs."""
    site = subject.context.site
    stated = site is not None and site.launchers.openmpi is not None
    return stated or _OPEN_MPI.search(subject.script.text) is not None


@rule(
    "HT601",
    "warning",
    "mpirun with its default binding",
    advice="write mpirun --map-by ppr:N:node --bind-to none (or --map-by ppr:N:node:PE=CORES)",
)
def mpirun_binding(subject: Subject) -> Iterator[RuleHit]:
    script, asked = subject.script, subject.script.asked
    if re.search(r"hwloc_base_binding_policy|rmaps_base_mapping_policy|PRTE_MCA_", script.text):
        return
    for launch, texts in _mpiruns(subject):
        # A rank with one core loses nothing by its binding.
        threads = asked.has("exclusive", "cpus-per-gpu") or (asked.cpus_per_task or 1) > 1
        if not threads and (launch.starter == "" or asked.batch):
            continue
        hidden = any(
            text.startswith("$") and not before.startswith("-")
            for before, text in pairwise(["", *texts])
        )
        if not any(text.startswith(_BINDING) for text in texts) and not hidden:
            yield RuleHit(
                launch.line,
                "neither --map-by nor --bind-to",
                severity=None if _is_open_mpi(subject) else "info",
            )


@rule(
    "HT606",
    "error",
    "mpirun with more ranks than tasks",
    advice='write mpirun -np "$SLURM_NTASKS", or omit -np: the default is all slots',
)
def more_than_slots(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch, texts in _mpiruns(subject):
        wanted = ranks_wanted(texts, script)
        slots = script.asked.tasks if script.asked.batch else None
        if wanted and slots and wanted > slots and not _placed(texts):
            message = f"-np {wanted}, but the job has {slots} task{'s' * (slots > 1)}"
            # Another MPI starts them, and they share the cores.
            yield RuleHit(
                launch.line, message, severity=None if _is_open_mpi(subject) else "warning"
            )


@rule(
    "HT608",
    "warning",
    "mpirun with fewer ranks than tasks",
    advice='write mpirun -np "$SLURM_NTASKS", or omit -np: the default is all tasks',
)
def fewer_than_tasks(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    runs = list(rank_launches(script, outer="mpirun"))
    tasks = script.asked.tasks
    if len(runs) != 1 or tasks is None or runs[0].command.ending == "&":
        return
    texts = runs[0].texts
    if runs[0].starter != "python" or _placed(texts) or "-map-by" in " ".join(texts):
        return
    wanted = ranks_wanted(texts, script)
    if wanted is not None and 1 < wanted < tasks and wanted != script.asked.nodes:
        message = f"-np {wanted}, but the job has {tasks} tasks"
        gpus, nodes = script.asked.gpus_per_node, script.asked.nodes
        others = script.asked.has("gpus", "gpus-per-task", "gres")
        # Tasks can be a way to request cores: only idle GPUs are certainly a mistake.
        if gpus and nodes and wanted < gpus * nodes:
            yield RuleHit(runs[0].line, message)
        elif not (gpus and nodes) and "OMP_NUM_THREADS" not in script.text and not others:
            yield RuleHit(runs[0].line, message, severity="info")


def _placed(texts: list[str]) -> bool:
    """Whether an mpirun says itself which hosts have how many ranks, also in a file."""
    text = " ".join(texts)
    return OWN_PLACES.search(text) is not None or re.search("file| -f ", text) is not None


def ranks_wanted(texts: list[str], script: JobScript) -> int | None:
    """Return how many ranks an mpirun starts, if its arguments say it."""
    for text, following in pairwise([*texts, ""]):
        name, equals, value = text.partition("=")
        if name in ("-np", "-n", "--np", "--n", "-c"):
            return script.values.number(value if equals else following)
    return None
