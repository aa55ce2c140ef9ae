"""What PBS Professional and OpenPBS give inside a job."""

from hpc_train.model.batch_system import RETRIED, BatchSystem

_STARTERS = "hpc_train.plans.launchers.pbs_nodes"

PBS = BatchSystem(
    title="PBS",
    template="pbs.sh.j2",
    prefix="#PBS -",
    letters=True,
    directives="hpc_train.plans.pbs_directives:of_pbs",
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
    host="$(hostname)",
    # A line for each process; the first node runs the script.
    nodes="awk '!seen[$0]++' \"$PBS_NODEFILE\"",
    hostfile="PBS_NODEFILE",
    job_id="PBS_JOBID",
    # Of a subjob with its index, so that two on one node have different ports.
    job_digits="${PBS_JOBID%%[!0-9]*}${PBS_ARRAY_INDEX:-}",
    array_task="PBS_ARRAY_INDEX",
    array_mark="^array_index^",
    start_folder="PBS_O_WORKDIR",
    inherits=False,
    instead={
        "lifecycle": RETRIED,
        "signal_before_end": "TERM at the time limit, KILL after the server's kill_delay",
        "preemption": "PBS suspends the job, or ends it: hpctrain retry RUN starts it again",
        "placement: nested": "each run is a job or a job of an array",
        "elastic": "a node that fails ends the job; hpctrain retry RUN starts it again",
        "--exclude-failed-nodes": "pbsnodes -l lists the nodes that PBS gives to no job",
    },
)
