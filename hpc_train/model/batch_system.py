"""BatchSystem: what a scheduler gives inside a job, and what it does with a job."""

from hpc_train.model.value import Value


class BatchSystem(Value, frozen=True, kw_only=True):
    """What a scheduler gives inside a job; `Executor` is what it does outside.

    Templates see it as `batch`, launchers as `request.batch`. The empty text and `False` mean that
    a scheduler does not have it; names of variables are without `$`.

    Args:
        name: its name in profiles; that of the registry, set by `registry.find_batch_system`.
        title: its name in messages.
        template: the template of its scripts, unless the profile names another.
        prefix: what a directive begins with, such as `#SBATCH --`.
        this_machine: jobs run where hpctrain runs, without a queue.
        steps: srun starts processes as steps, which Slurm signals and for which it opens images.
        starter: `module:attr` of a function from a LaunchRequest and options to the words that
            start one process on each node.
        node_rank: variables of which the first that is set is the number of the node, from 0, in a
            process that `starter` started.
        node_name: variable with the scheduler's name of the node.
        node_list: variable with the nodes of the job, as text for people.
        nodes: shell command that prints the nodes of the job, one a line, the first one first.
        job_id: variable with the id of the job.
        restart_count: variable with the number of starts before this one.
        array_job: variable with the id of the array of the job.
        array_task: variable with the number of the job in its array.
        cores: variable with the number of cores of the job on this node.
        start_folder: variable with the folder of the submission, if jobs start elsewhere.
        signals: it sends a signal before the time limit.
        requeues: it queues a job again, after the loss of a node or when the job asks.
        allocations: one job can run several studies' runs, each on the first nodes.
        network_option: it has sbatch's option `--network`.
        host_list: its nodes are the hosts of the profile, and the script runs on each of them.
        memory_by_request: a job gets only the memory that it requests, even on whole nodes.
    """

    name: str = ""
    title: str = ""
    template: str
    prefix: str = ""
    this_machine: bool = False
    steps: bool = False
    starter: str = ""
    node_rank: tuple[str, ...] = ()
    node_name: str = ""
    node_list: str = ""
    nodes: str = ""
    job_id: str = ""
    restart_count: str = ""
    array_job: str = ""
    array_task: str = ""
    cores: str = ""
    start_folder: str = ""
    signals: bool = False
    requeues: bool = False
    allocations: bool = False
    network_option: bool = False
    host_list: bool = False
    memory_by_request: bool = False

    @property
    def host_name(self) -> str:
        """Return the shell's word for the name of the node."""
        return f"${{{self.node_name}:-$HOSTNAME}}" if self.node_name else "$(hostname)"

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
        return f"${{{self.job_id}:-$$}}" if self.job_id else "$$"

    @property
    def task(self) -> str:
        """Return the shell's word for the number of the job in its array; else empty."""
        return f"${{{self.array_task}:-}}" if self.array_task else ""

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
)
