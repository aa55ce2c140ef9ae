"""What each scheduler gives inside a job, and what it does with a job."""

from functools import cache
from typing import cast

import msgspec

from hpc_train.base.errors import UnknownNameError
from hpc_train.base.registry import load
from hpc_train.base.values import Value

# What some schedulers do with a job and others do not: the keys of `BatchSystem.instead`.
ABILITIES = {
    "lifecycle": "the job queues itself again",
    "signal_before_end": "a signal to the ranks before the time limit",
    "preemption": "a warning before the nodes are taken away",
    "arrays": "the repetitions of a point are one job",
    "dependency": "a job waits for the end of another",
    "hold": "a job waits until it is released",
    "placement: nested": "the runs of a study share one allocation",
    "elastic": "a job continues without a node that failed",
    "--exclude-failed-nodes": "a retry leaves out the nodes that failed",
}
RETRIED = "hpctrain retry RUN starts it again, from the checkpoints in env.HPCTRAIN_CHECKPOINTS"
ONE_BY_ONE = "hpctrain submit --wait returns after its end"
CANCELLED = "hpctrain cancel RUN, and hpctrain retry RUN later"


def nothing_instead() -> dict[str, str]:
    """Return the entries of a scheduler of which nothing is known."""
    return dict.fromkeys(ABILITIES, "hpctrain does nothing instead")


class BatchSystem(Value, frozen=True, kw_only=True):
    """What a scheduler gives inside a job; `Executor` is what it does outside.

    Templates see it as `batch`, launchers as `request.batch`. The empty text and `False` mean that
    a scheduler does not have it; names of variables are without `$`.

    Args:
        name: its name in profiles; that of the registry, set by `registry.find_batch_system`.
        title: its name in messages.
        template: the template of its scripts, unless the profile names another.
        prefix: what a directive begins with, such as `#SBATCH --`.
        letters: options are single letters; a longer name is a resource of `-l`.
        directives: `module:attr` of a function from a site, settings, a topology and a launch to
            the directives of a job; empty if it has none.
        submit: the command that submits a script.
        this_machine: jobs run where hpctrain runs, without a queue.
        steps: srun starts processes as steps, which Slurm signals and for which it opens images.
        starter: `module:attr` of a function from a LaunchRequest and options to the words that
            start one process on each node.
        starters: other such functions, by the name that a profile gives them.
        node_rank: variables of which the first that is set is the number of the node, from 0, in a
            process that `starter` started.
        node_name: variable with the scheduler's name of the node.
        node_list: variable with the nodes of the job, as text for people.
        nodes: shell command that prints the nodes of the job, one a line, the first one first.
        hostfile: variable with a file that has a line for each slot of the job, for mpirun.
        job_id: variable with the id of the job.
        job_digits: the shell's word for the number in the id of the job, if the id is not one.
        restart_count: variable with the number of starts before this one.
        array_job: variable with the id of the array of the job.
        array_task: variable with the number of the job in its array.
        cluster: variable with the name of the cluster, within which ids of jobs are unique.
        cores: variable with the number of cores of the job on this node.
        start_folder: variable with the folder of the submission, if jobs start elsewhere.
        inherits: a job has the variables of the shell that submits it.
        instead: what of `ABILITIES` it does not do -> what is done instead; without it, all.
        network_option: it has sbatch's option `--network`.
        host_list: its nodes are the hosts of the profile, and the script runs on each of them.
        memory_by_request: a job gets only the memory that it requests, even on whole nodes.
        whole_nodes: a job gets all cores and GPUs of its nodes, without requesting them.
        image_of_job: it starts the script in the image of the job.
        refused: launchers that cannot start ranks in its jobs -> why.
        check: `module:attr` of a function that checks a profile; raises SiteProfileError.
        request: `module:attr` of a function from a LaunchPlan and a profile to the request that is
            sent with a script, for a scheduler without directives; raises PlanError.
    """

    name: str = ""
    title: str = ""
    template: str
    prefix: str = ""
    letters: bool = False
    directives: str = ""
    submit: str = "sbatch"
    this_machine: bool = False
    steps: bool = False
    starter: str = ""
    starters: tuple[tuple[str, str], ...] = ()
    node_rank: tuple[str, ...] = ()
    node_name: str = ""
    node_list: str = ""
    nodes: str = ""
    hostfile: str = ""
    job_id: str = ""
    job_digits: str = ""
    restart_count: str = ""
    array_job: str = ""
    array_task: str = ""
    cluster: str = ""
    cores: str = ""
    start_folder: str = ""
    inherits: bool = True
    instead: dict[str, str] = msgspec.field(default_factory=nothing_instead)
    network_option: bool = False
    host_list: bool = False
    memory_by_request: bool = False
    whole_nodes: bool = False
    image_of_job: bool = False
    refused: dict[str, str] = {}
    check: str = ""
    request: str = ""

    def option(self, name: str) -> str:
        """Write the name of an option as in a command: `--nodes`, `-q` or, a resource, `-l mem`."""
        dashes = self.prefix.partition(" ")[2]
        return f"{dashes}l {name}" if self.letters and name[1:] else f"{dashes}{name}"

    def directive(self, name: str, value: str) -> str:
        """Write a directive; an empty value is that of an option without value."""
        sign = " " if self.letters and not name[1:] else "="
        line = f"{self.prefix.partition(' ')[0]} {self.option(name)}"
        return f"{line}{sign}{value}" if value else line

    def options_in(self, name: str, value: str) -> tuple[tuple[str, str], ...]:
        """Split the resources of `-l` into an option each; any other option is itself."""
        if not self.letters or name != "l":
            return ((name, value),)
        parts = (part.partition("=") for part in value.split(","))
        return tuple((resource, amount) for resource, _, amount in parts)

    @property
    def signals(self) -> bool:
        """Return whether it sends a signal before the time limit."""
        return "signal_before_end" not in self.instead

    @property
    def requeues(self) -> bool:
        """Return whether it queues a job again, after the loss of a node or when the job asks."""
        return "lifecycle" not in self.instead

    @property
    def allocations(self) -> bool:
        """Return whether one job can run several runs of a study, each on the first nodes."""
        return "placement: nested" not in self.instead

    @property
    def restarts(self) -> str:
        """Return the shell's word for the number of starts before this one."""
        return f"${{{self.restart_count}:-0}}" if self.restart_count else "0"

    @property
    def job(self) -> str:
        """Return the shell's word for the id of the job; empty outside a job."""
        return f"${{{self.job_id}:-}}" if self.job_id else ""

    @property
    def job_number(self) -> str:
        """Return the shell's word for a number of the job; outside a job, that of the shell."""
        if self.job_digits:
            return self.job_digits
        return f"${{{self.job_id}:-$$}}" if self.job_id else "$$"

    @property
    def task(self) -> str:
        """Return the shell's word for the number of the job in its array; else empty."""
        return f"${{{self.array_task}:-}}" if self.array_task else ""

    @property
    def cluster_name(self) -> str:
        """Return the shell's word for the name of the cluster; empty if it has none."""
        return f"${{{self.cluster}:-}}" if self.cluster else ""

    @property
    def rank_of_node(self) -> str:
        """Return the shell's word for the number of the node."""
        *others, last = self.node_rank or ("",)
        word = f"${last}" if last else "0"
        for name in reversed(others):
            word = f"${{{name}:-{word}}}"
        return word


# A job by hand in an allocation of Slurm has its variables.
LOCAL = BatchSystem(
    title="this machine",
    template="local.sh.j2",
    this_machine=True,
    node_list="SLURM_JOB_NODELIST",
    job_id="SLURM_JOB_ID",
    restart_count="SLURM_RESTART_COUNT",
    array_job="SLURM_ARRAY_JOB_ID",
    array_task="SLURM_ARRAY_TASK_ID",
    instead={
        "lifecycle": RETRIED,
        "signal_before_end": "TERM at the time limit, KILL 10 s later",
        "preemption": "nothing preempts a run",
        "arrays": "the runs start one after the other",
        "dependency": ONE_BY_ONE,
        "hold": CANCELLED,
        "placement: nested": "each run starts separately",
        "elastic": "elastic.max_restarts starts the ranks of this machine again",
        "--exclude-failed-nodes": "there is one node",
    },
)


SLURM = BatchSystem(
    title="Slurm",
    template="slurm.sbatch.j2",
    prefix="#SBATCH --",
    directives="hpc_train.plans.directives:of_slurm",
    steps=True,
    starter="hpc_train.plans.launchers.tasks:on_each_node",
    node_rank=("SLURM_NODEID",),
    node_name="SLURMD_NODENAME",
    node_list="SLURM_JOB_NODELIST",
    nodes='scontrol show hostnames "$SLURM_JOB_NODELIST"',
    job_id="SLURM_JOB_ID",
    restart_count="SLURM_RESTART_COUNT",
    array_job="SLURM_ARRAY_JOB_ID",
    array_task="SLURM_ARRAY_TASK_ID",
    cluster="SLURM_CLUSTER_NAME",
    cores="SLURM_CPUS_ON_NODE",
    instead={},
    network_option=True,
    memory_by_request=True,
)

_STARTERS = "hpc_train.plans.launchers.mpi"

PBS = BatchSystem(
    title="PBS",
    template="pbs.sh.j2",
    prefix="#PBS -",
    letters=True,
    directives="hpc_train.plans.directives:of_pbs",
    submit="qsub",
    starter=f"{_STARTERS}:by_tmrsh",
    starters=(
        ("openmpi", f"{_STARTERS}:by_openmpi"),
        ("pals", f"{_STARTERS}:by_pals"),
        ("tmrsh", f"{_STARTERS}:by_tmrsh"),
    ),
    # Of Cray PALS, of Open MPI, and of our own program for pbs_tmrsh.
    node_rank=("PALS_RANKID", "OMPI_COMM_WORLD_RANK", "HPCTRAIN_NODE_RANK"),
    node_name="HPCTRAIN_NODE",
    # A line for each process; the first node runs the script.
    nodes="awk '!seen[$0]++' \"$PBS_NODEFILE\"",
    hostfile="PBS_NODEFILE",
    job_id="PBS_JOBID",
    job_digits="${PBS_JOBID%%[!0-9]*}",
    start_folder="PBS_O_WORKDIR",
    inherits=False,
    instead={
        "lifecycle": RETRIED,
        "signal_before_end": "TERM at the time limit, KILL after the server's kill_delay",
        "preemption": "PBS suspends the job, or ends it: hpctrain retry RUN starts it again",
        "arrays": "each run is a job",
        "placement: nested": "each run is a job",
        "elastic": "a node that fails ends the job; hpctrain retry RUN starts it again",
        "--exclude-failed-nodes": "pbsnodes -l lists the nodes that PBS gives to no job",
    },
)

_NO_SLURM = "there is no Slurm on a list of hosts; torchrun starts the ranks of each host"

HOSTS = BatchSystem(
    title="hpctrain",
    template="hosts.sh.j2",
    starter="hpc_train.plans.launchers.base:on_this_node",
    node_rank=("HPCTRAIN_NODE_RANK",),
    node_name="HPCTRAIN_NODE_NAME",
    node_list="HPCTRAIN_HOSTS",
    nodes="tr , '\\n' <<<\"$HPCTRAIN_HOSTS\"",
    host_list=True,
    refused={"srun": _NO_SLURM, "ibrun": _NO_SLURM},
    instead={
        "lifecycle": RETRIED,
        "signal_before_end": "TERM at the time limit, KILL 30 s later",
        "preemption": "nothing preempts a run: its hosts are locked until it ends",
        "arrays": "each run waits for free hosts, in the order of the study",
        "dependency": ONE_BY_ONE,
        "hold": CANCELLED,
        "placement: nested": "each run takes free hosts",
        "elastic": "a host that fails ends the run; hpctrain retry RUN starts it again",
    },
)

_NO_STEPS = "SageMaker has no srun"
_NO_SSH = "it starts ranks through ssh, which the hosts of a training job do not have"
_FOLDER = "hpc_train.sagemaker"

SAGEMAKER = BatchSystem(
    title="SageMaker",
    template="sagemaker.sh.j2",
    node_rank=("SM_CURRENT_HOST_RANK",),
    node_name="SM_CURRENT_HOST",
    node_list="hpctrain_hosts",
    job_id="TRAINING_JOB_NAME",
    cores="SM_NUM_CPUS",
    image_of_job=True,
    whole_nodes=True,
    check=f"{_FOLDER}.training_job:check",
    request=f"{_FOLDER}.training_job:training_job",
    refused={
        "srun": _NO_STEPS,
        "ibrun": _NO_STEPS,
        "mpirun": _NO_SSH,
        "mpiexec": _NO_SSH,
        "deepspeed": _NO_SSH,
        "accelerate": "only a host itself knows its number; torchrun starts the same ranks",
    },
    instead={
        "lifecycle": "with sagemaker.spot, an interrupted or retried job "
        "resumes from /opt/ml/checkpoints",
        "signal_before_end": "TERM at the time limit, and the hosts end 120 s later",
        "preemption": "with sagemaker.spot, save checkpoints at regular intervals",
        "arrays": "each run is a training job",
        "dependency": ONE_BY_ONE,
        "hold": CANCELLED,
        "placement: nested": "each run is a training job",
        "elastic": "a host that fails ends the job; hpctrain retry RUN starts it again",
        "--exclude-failed-nodes": "AWS chooses the hosts of each job",
    },
)


@cache
def find_batch_system(name: str) -> BatchSystem:
    """Return what the scheduler of that name gives inside a job.

    If a package registers an executor and no batch system, its jobs have what those of this machine
    have, except that they may run elsewhere.

    Raises:
        PluginError: the plug-in cannot be loaded.
    """
    try:
        found = cast("BatchSystem", load("batch_systems", name))
    except UnknownNameError:
        found = msgspec.structs.replace(LOCAL, this_machine=False, instead=nothing_instead())
    return msgspec.structs.replace(found, name=name)
