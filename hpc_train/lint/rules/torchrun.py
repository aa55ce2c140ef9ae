"""Rules on torchrun: the numbers of agents, workers and nodes must agree."""

import difflib
import re
from collections.abc import Iterator

from hpc_train.base.shell import repeats
from hpc_train.lint.directives import share
from hpc_train.lint.launches import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import (
    JobScript,
    flag_number,
    is_one_of_several,
    nodes_of,
    rank_launches,
    starts_elsewhere,
    tasks_of,
    workers_of,
)


@rule(
    "HT220",
    "error",
    "several torchrun agents on a node",
    advice="write srun --ntasks-per-node=1, and #SBATCH --ntasks-per-node=1",
)
def several_agents(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch in rank_launches(script, "torchrun", outer="srun"):
        # Agents with one worker each can share a node.
        one_worker = flag_number(launch, script, "nproc-per-node") == 1
        if launch.opaque or launch.option("het-group") or one_worker:
            continue
        tasks, nodes = tasks_of(launch, script), nodes_of(launch, script)
        own = launch.option("ntasks", "nodes", "ntasks-per-node")
        each = None if own else script.asked.tasks_per_node
        if tasks and nodes and tasks > nodes:
            message = f"srun starts {tasks} torchruns on {nodes} node{'s' * (nodes > 1)}"
            yield RuleHit(launch.line, message)
        elif nodes is None and each and each > 1:
            yield RuleHit(launch.line, f"srun starts {each} torchruns on each node")


@rule(
    "HT223",
    "error",
    "more workers than GPUs",
    advice="set --nproc-per-node to the number of GPUs requested per node",
)
def more_workers(subject: Subject) -> Iterator[RuleHit]:
    for launch, workers, gpus in _workers(subject):
        if workers > gpus:
            message = f"{_counted(launch, workers)}, but {gpus} GPU{'s' * (gpus > 1)}"
            yield RuleHit(launch.starter_line, message)


@rule(
    "HT224",
    "warning",
    "fewer workers than GPUs",
    advice="set --nproc-per-node to the number of GPUs requested per node",
)
def fewer_workers(subject: Subject) -> Iterator[RuleHit]:
    for launch, workers, gpus in _workers(subject):
        if workers < gpus:
            yield RuleHit(launch.starter_line, f"{_counted(launch, workers)}, but {gpus} GPUs")


def _counted(launch: LaunchCommand, workers: int) -> str:
    count = f"{workers} worker{'s' * (workers > 1)} on a node"
    if launch.starter == "accelerate":
        total, machines = launch.flags.get("num-processes"), launch.flags.get("num-machines") or "1"
        return f"--num_processes {total} (the total) on {machines} machines is {count}"
    given = {"nproc-per-node", "num-gpus"} & set(launch.flags)
    return count if given else f"no --nproc-per-node, so {count}"


def _workers(subject: Subject) -> Iterator[tuple[LaunchCommand, int, int]]:
    script = subject.script
    gpus = script.asked.gpus_per_node
    for launch in rank_launches(script, "torchrun", "accelerate", "deepspeed"):
        if launch.option("gpus", "gpus-per-node", "gres", "gpus-per-task", "het-group"):
            continue
        if "nproc-per-node" in misspelt_options(launch).values():
            continue
        # Another program, or another torchrun, has the other GPUs.
        if launch.command.ending == "&" or script.sets("CUDA_VISIBLE_DEVICES"):
            continue
        workers = workers_of(launch, script)
        # Agents of one worker each share a node's GPUs.
        if workers == 1 and launch.outer == "srun":
            workers = share(tasks_of(launch, script), nodes_of(launch, script))
        if gpus and workers:
            yield launch, workers, gpus


@rule(
    "HT225",
    "error",
    "--nnodes is not the number of nodes",
    advice='write --nnodes "$SLURM_NNODES", and start one torchrun on each node',
)
def wrong_nnodes(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch in rank_launches(script, *_COUNTS):
        nodes, count = nodes_of(launch, script), _COUNTS[launch.starter]
        if flag_number(launch, script, "nproc-per-node") == 1 and launch.outer == "srun":
            # torchrun counts each agent as a node.
            nodes = tasks_of(launch, script)
        several = launch.option("het-group") or is_one_of_several(launch, script)
        stated = script.asked.batch or bool(script.pbs)
        if several or not stated or nodes is None:
            continue
        nnodes = flag_number(launch, script, count)
        if "standalone" in launch.flags:
            nnodes = 1
        elif count not in launch.flags:
            hidden = script.sets("PET_NNODES") or launch.hides or launch.starter == "accelerate"
            nnodes = None if hidden else 1
        if nnodes is not None and nnodes != nodes and (launch.outer == "srun" or nnodes > nodes):
            named = "--standalone" if "standalone" in launch.flags else f"--{count} {nnodes}"
            kind = "node" if nodes == nodes_of(launch, script) else "torchrun"
            yield RuleHit(launch.starter_line, f"{named}, but {nodes} {kind}{'s' * (nodes > 1)}")


@rule(
    "HT226",
    "error",
    "program on the first node only",
    advice="start it on every node: srun --ntasks-per-node=1 torchrun …, or one process for "
    "each rank: srun … PROGRAM",
)
def first_node_only(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    nodes = script.asked.nodes
    if nodes is None or nodes < 2:
        return
    alone = [] if starts_elsewhere(script) else list(rank_launches(script, outer=""))
    quiet = _starts_steps(script)
    for launch in alone:
        counted = launch.flags.get(_COUNTS.get(launch.starter, ""))
        number = flag_number(launch, script, _COUNTS.get(launch.starter, ""))
        if counted is not None and number != 1:
            message = f"{launch.starter} is not started on the other {nodes - 1} of {nodes} nodes"
            yield RuleHit(launch.line, message)
        elif not quiet and launch is alone[-1] and not _drives(launch):
            waits = launch.starter == "python" and script.sets("MASTER_ADDR", "WORLD_SIZE")
            message = f"{launch.starter} runs on the first of {nodes} nodes only"
            yield RuleHit(launch.line, message, severity="error" if waits else "warning")


_COUNTS = {"torchrun": "nnodes", "accelerate": "num-machines"}
_DRIVER = re.compile(
    r"ray|dask|spark|parsl|submit|prepare|preproc|download|convert|tokeni|infer|eval|plot|launch",
    re.IGNORECASE,
)


def _starts_steps(script: JobScript) -> bool:
    """Whether something in the script starts processes elsewhere."""
    return any(one.outer for one in script.launches) or starts_elsewhere(script)


def _drives(launch: LaunchCommand) -> bool:
    """Whether a program may start the others itself, or needs none."""
    program = next((text for text in launch.texts if text.endswith(".py")), "")
    driver = launch.starter == "python" and _DRIVER.search(program)
    return launch.starter == "deepspeed" or bool(driver)


@rule(
    "HT234",
    "warning",
    "one process for several tasks",
    advice="write srun PROGRAM, or --ntasks-per-node=1 if the program starts its ranks itself",
)
def one_process(subject: Subject) -> Iterator[RuleHit]:
    script, asked = subject.script, subject.script.asked
    each = asked.tasks_per_node or 1
    if asked.nodes != 1 or each < 2 or each != asked.gpus_per_node or _starts_steps(script):
        return
    launches = list(rank_launches(script))
    # Processes in the background may be one for each task.
    others = any(
        one.starter != "python" or _drives(one) or one.command.ending == "&" for one in launches
    )
    # The process may use the devices itself.
    if launches and not others and not script.sets("CUDA_VISIBLE_DEVICES"):
        yield RuleHit(launches[-1].line, f"{each} tasks are requested, and one process is started")


@rule(
    "HT227",
    "error",
    "the same node rank for every torchrun",
    advice='pass the rank inside the step: srun … bash -c \'torchrun --node-rank "$SLURM_NODEID" '
    "…', or count the nodes in the loop",
)
def no_node_rank(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    launches = list(rank_launches(script, "torchrun"))
    for launch in launches:
        nodes, command = flag_number(launch, script, "nnodes") or 1, launch.command
        alike = launch.outer == "srun" and not is_one_of_several(launch, script)
        if launch.outer == "ssh" and nodes > len(launches):
            # A loop, or a program that starts the same on each of its nodes.
            alike = command.program != "ssh" or repeats(script.around(command))
        if nodes < 2 or not alike:
            continue
        rank = flag_number(launch, script, "node-rank")
        # With another rendezvous torchrun does not use its --node-rank.
        hidden = launch.hides and not {"rdzv-backend", "master-addr"} & set(launch.flags)
        static = not hidden and launch.flags.get("rdzv-backend", "static") == "static"
        if rank is not None and tasks_of(launch, script) != 1 and static:
            yield RuleHit(launch.starter_line, f"--node-rank {rank} for every node of the step")
        dynamic = {"node-rank", "rdzv-backend", "rdzv-endpoint", "standalone"} & set(launch.flags)
        if "master-addr" in launch.flags and not dynamic and "PET_NODE_RANK" not in script.text:
            hidden = any("[" in w.raw and w.raw.startswith(("$", '"${')) for w in launch.words)
            if not hidden:
                yield RuleHit(launch.starter_line, "--master-addr without --node-rank")


@rule(
    "HT229",
    "info",
    "OMP_NUM_THREADS left to torchrun",
    advice="export OMP_NUM_THREADS with the number of cores per rank",
)
def no_omp_threads(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if "OMP_NUM_THREADS" in script.text or "ompthreads" in script.text:
        return
    message = "OMP_NUM_THREADS is not set, so torchrun sets it to 1"
    if script.only_pbs:
        message = "PBS sets OMP_NUM_THREADS to the cores of the chunk, for each worker"
    for launch in rank_launches(script, "torchrun"):
        workers = flag_number(launch, script, "nproc-per-node") or script.asked.gpus_per_node
        if "nproc-per-node" in launch.flags and workers != 1:
            yield RuleHit(launch.starter_line, message)
            return


_LISTS = {
    "SLURM_TASKS_PER_NODE": "1(x2)",
    "SLURM_JOB_CPUS_PER_NODE": "32(x2)",
    "SLURM_JOB_GPUS": "0,1,2,3",
    "SLURM_STEP_GPUS": "0,1,2,3",
    "CUDA_VISIBLE_DEVICES": "0,1,2,3",
    "SLURM_GPUS_PER_NODE": "a100:4",
    "SLURM_GPUS": "a100:8",
}


@rule(
    "HT236",
    "error",
    "list where one number is needed",
    advice="write gpu, a number, or $SLURM_GPUS_ON_NODE",
)
def list_as_number(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch in rank_launches(script):
        for flag in ("nproc-per-node", "num-processes", "nnodes", "num-machines", "num-gpus"):
            text = script.values.substitute(launch.flags.get(flag) or "")
            match = re.fullmatch(r"\$\{?(\w+)\}?", text)
            name = match[1] if match else ""
            option = {"SLURM_GPUS_PER_NODE": "gpus-per-node", "SLURM_GPUS": "gpus"}.get(name)
            if option is not None and ":" not in (script.asked.value(option) or ""):
                continue
            if name in _LISTS and not (name.endswith("S_PER_NODE") and script.asked.nodes == 1):
                example = script.asked.value(option) if option else _LISTS[name]
                message = f"--{flag}: ${name} is a list or has a type, such as {example!r}"
                yield RuleHit(launch.starter_line, message)


@rule(
    "HT237",
    "error",
    "two torchruns on one port",
    advice="give each a port of its own: --rdzv-backend=c10d --rdzv-endpoint=localhost:0, or "
    "--standalone",
)
def same_port(subject: Subject) -> Iterator[RuleHit]:
    seen: set[str] = set()
    for launch in rank_launches(subject.script, "torchrun", outer=""):
        if launch.command.ending != "&" or "standalone" in launch.flags:
            continue
        ports = [launch.flags.get(name) or "" for name in ("master-port", "rdzv-endpoint")]
        port = next((text.rpartition(":")[2] for text in ports if text), "29500")
        looped = repeats(subject.script.around(launch.command)) and "$" not in port
        if port != "0" and (port in seen or looped) and not launch.hides:
            yield RuleHit(launch.line, f"another torchrun of this node has port {port}")
        seen.add(port)


_SIZES = (
    "nodes", "ntasks", "ntasks-per-node", "gres", "gpus", "gpus-per-node", "gpus-per-task",
    "partition", "mem",
)  # fmt: skip


@rule(
    "HT221",
    "warning",
    "torchrun bound by srun",
    advice='write srun --cpu-bind=none --cpus-per-task="$SLURM_CPUS_PER_TASK" torchrun …',
)
def torchrun_bound(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.sets("SLURM_CPU_BIND"):
        return
    for launch in rank_launches(script, "torchrun", outer="srun"):
        # A single worker does not share the set.
        single = workers_of(launch, script) == 1
        if single or launch.option("cpu-bind") or launch.opaque:
            continue
        # If the mask contains all cores of the node, the binding costs little.
        sized = launch.option("cpus-per-task", "exclusive") is not None
        # The cores come with the GPUs, so that SLURM_CPUS_PER_TASK is not set.
        per_gpu = launch.option("cpus-per-gpu") is not None or (
            script.asked.has("cpus-per-gpu") and not script.asked.has("cpus-per-task")
        )
        yield RuleHit(
            launch.line,
            "srun binds torchrun, and so all its workers, to one set of cores",
            severity="info" if sized or per_gpu else None,
            advice="write srun --cpu-bind=none torchrun …" if per_gpu else None,
        )


@rule(
    "HT222",
    "warning",
    "ranks without cores",
    advice="add #SBATCH --cpus-per-task=N, with the cores for all that one task starts",
)
def torchrun_without_cores(subject: Subject) -> Iterator[RuleHit]:
    script, asked, site = subject.script, subject.script.asked, subject.context.site
    given = ("cpus-per-task", "cpus-per-gpu", "exclusive", "mincpus", "tres-per-task")
    if not asked.batch or not asked.options or asked.has(*given):
        return
    if site is not None and site.cpu_request == "forbidden":
        return
    # The command line of sbatch, or the partition, gives more cores than the script shows.
    # A step that starts several tasks on a node could not do so with one core.
    steps = (one for one in subject.script.launches if one.outer == "srun")
    each = (one.option("ntasks-per-node") for one in steps)
    if not asked.has(*_SIZES) or any(one.value != "1" for one in each if one):
        return
    one_task = asked.tasks_per_node == 1
    for launch in rank_launches(script):
        if launch.option("cpus-per-task", "cpus-per-gpu", "exclusive", "cpu-bind"):
            continue
        if launch.starter == "torchrun" and one_task:
            message = "no --cpus-per-task for the workers of a node"
        elif launch.starter != "torchrun" and asked.gpus and (one_task or launch.outer):
            message = "no --cpus-per-task: a task and its data loaders have one core"
        else:
            continue
        yield RuleHit(launch.line, message)
        return


OPTIONS = (
    "help", "nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf",
    "standalone", "max-restarts", "monitor-interval", "start-method", "event-log-handler", "role",
    "module", "no-python", "run-path", "log-dir", "redirects", "tee", "local-ranks-filter",
    "duplicate-stdout-filters", "duplicate-stderr-filters", "node-rank", "master-addr",
    "master-port", "local-addr", "logs-specs", "numa-binding", "signals-to-handle",
    "shutdown-timeout", "virtual-local-rank", "log-line-prefix-template", "use-env",
)  # fmt: skip


@rule("HT233", "error", "misspelled option of torchrun", advice="torchrun --help lists the options")
def misspelt(subject: Subject) -> Iterator[RuleHit]:
    for launch in rank_launches(subject.script, "torchrun"):
        for name, meant in list(misspelt_options(launch).items())[:1]:
            yield RuleHit(
                launch.starter_line,
                f"torchrun has no --{name}; did you mean --{meant}?",
                advice=f"write --{meant}",
            )


def misspelt_options(launch: LaunchCommand) -> dict[str, str]:
    """Return the options that torchrun does not have, with those that are meant."""
    # argparse completes the beginning of a name.
    unknown = [n for n in launch.flags if len(n) > 1 and not any(o.startswith(n) for o in OPTIONS)]
    near = {name: difflib.get_close_matches(name, OPTIONS, n=1, cutoff=0.8) for name in unknown}
    return {name: found[0] for name, found in near.items() if found}
