"""Signatures of MPI, PMIx and UCX: start, transports, lost daemons."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_OMPI = ("https://docs.open-mpi.org/",)
_UCX = ("https://openucx.readthedocs.io/",)

MPI = (
    Signature(
        id="openmpi_direct_launch_without_pmi",
        group="mpi",
        severity="fatal",
        literals=(
            b"appears to have been direct launched",
            b"OMPI was not built with SLURM",
            b"OPAL ERROR: Unreachable in file",
        ),
        pattern=re.compile(
            r"appears to have been direct launched using|OMPI was not built with SLURM"
            r"|OPAL ERROR: Unreachable in file pmix"
        ),
        title="Open MPI was started by srun, but cannot speak with Slurm's PMI",
        cause="srun did not offer PMIx, or Open MPI was built without it or with another version.",
        advice="`srun --mpi=pmix` (see `srun --mpi=list`), else start with mpirun.",
        example='The application appears to have been direct launched using "srun",',
        sources=_OMPI,
    ),
    Signature(
        id="mpi_not_enough_slots",
        group="mpi",
        severity="fatal",
        literals=(b"There are not enough slots available",),
        pattern=re.compile(
            r"There are not enough slots available(?:.{0,60}satisfy the (?P<slots>\d{1,9}) slots)?"
        ),
        title="mpirun has fewer slots than ranks were asked for",
        cause="--ntasks of the job, or the host file, gives fewer slots than `-n`.",
        advice="The same number for sbatch and mpirun; `:slots` in the host file;"
        " --oversubscribe only if meant.",
        example="There are not enough slots available in the system to satisfy the 16 slots",
        sources=_OMPI,
    ),
    Signature(
        id="mpi_pml_missing",
        group="mpi",
        severity="fatal",
        literals=(b"were able to be opened in the pml", b"cannot be selected"),
        pattern=re.compile(
            r"were able to be opened in the pml framework|PML (?P<pml>\w{1,20}) cannot be selected"
        ),
        title="Open MPI found no way to send messages (pml)",
        cause="UCX is missing in the container or on another node, or `pml=ucx` is forced where"
        " there is no device for it.",
        advice="`ompi_info | grep ucx` on the node; leave out OMPI_MCA_pml, or UCX_NET_DEVICES.",
        example="PML ucx cannot be selected",
        sources=_OMPI,
    ),
    Signature(
        id="ucx_cannot_allocate",
        group="mpi",
        severity="fatal",
        literals=(
            b"Failed to create UCP worker",
            b"ibv_create_cq(",
            b"ibv_reg_mr(",
            b"max locked memory",
        ),
        pattern=re.compile(
            r"ibv_(?:create_cq|reg_mr)\([^\n]{0,200}Cannot allocate memory"
            r"|Failed to create UCP worker|max locked memory"
        ),
        title="The InfiniBand library may not lock enough memory",
        cause="The limit of locked memory is small for the job.",
        advice="`ulimit -l` must say unlimited in the job: the site sets LimitMEMLOCK for slurmd.",
        example="UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory",
        sources=_UCX,
    ),
    Signature(
        id="ucx_transport_retry",
        group="mpi",
        severity="fatal",
        literals=(b"Transport retry count exceeded",),
        pattern=re.compile(
            r"Transport retry count exceeded(?: on (?P<device>\w{1,20}:\d{1,2})/(?P<link>\w{1,6}))?"
        ),
        title="A message over InfiniBand or RoCE was never answered",
        cause="The other node is dead, or a cable, switch or the RoCE settings (GID) are at fault.",
        advice="Look for the first error of the other ranks; `ibqueryerrors`; UCX_IB_GID_INDEX.",
        example="UCX  ERROR Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81)",
        sources=_UCX,
    ),
    Signature(
        id="mpi_lost_daemon",
        group="mpi",
        severity="fatal",
        literals=(
            b"has lost communication with a remote daemon",
            b"daemon has unexpectedly failed",
        ),
        pattern=re.compile(
            r"(?P<runtime>ORTE|PRTE) has lost communication with a remote daemon"
            r"|An? (?:ORTE|PRTE) daemon has unexpectedly failed"
        ),
        title="mpirun lost its daemon on a node",
        cause="The node died, ssh or TCP between nodes is blocked, or libraries are missing there.",
        advice="`--mca oob_tcp_if_include IFACE`; the same paths on all nodes (`--prefix`); or"
        " srun.",
        example="ORTE has lost communication with a remote daemon.",
        sources=_OMPI,
    ),
    Signature(
        id="mpi_peer_lost",
        group="mpi",
        severity="fatal",
        role="consequence",
        literals=(b"peer process has unexpectedly disconnected",),
        pattern=re.compile(r"MPI communication peer process has unexpectedly disconnected"),
        title="MPI lost the connection to another rank",
        cause="The other process crashed or ended without MPI_Finalize.",
        advice="Look for the first error on the host after `Peer host:`.",
        example="An MPI communication peer process has unexpectedly disconnected.  This",
        sources=_OMPI,
    ),
    Signature(
        id="mpi_init_failed",
        group="mpi",
        severity="fatal",
        literals=(b"Fatal error in MPI_Init", b"Fatal error in PMPI_Init", b"init failed: "),
        pattern=re.compile(
            r"Fatal error in P?MPI_Init(?:_thread)?\b[^\n]{0,80}|PMI2? init failed: \d{1,4}"
        ),
        title="MPI could not start",
        cause="srun and the library of MPI speak different dialects of PMI, or the network of MPI"
        " is not there (in a container: its libraries).",
        advice="`srun --mpi=list`, then --mpi=pmix, pmi2 or cray_shasta; load the MPI that the"
        " program was built with.",
        example="Fatal error in MPI_Init: Other MPI error, error stack:",
    ),
    Signature(
        id="mpi_rank_signalled",
        group="mpi",
        severity="fatal",
        role="consequence",
        literals=(b"noticed that process rank",),
        pattern=re.compile(
            r"noticed that process rank (?P<rank>\d{1,7}) with PID (?P<pid>\d{1,9}) on node "
            r"(?P<node>\S{1,80}) exited on signal (?P<number>\d{1,3})(?: \((?P<name>[^)]{1,40})\))?"
        ),
        title="Rank {rank} on {node} was ended by signal {number}",
        cause="9: out of memory of the host, or killed; 11: a crash in native code; 6: it aborted.",
        advice="Look for the first error of this rank.",
        example="mpirun noticed that process rank 3 with PID 811 on node n2 exited on signal 9"
        " (Killed).",
        sources=_OMPI,
    ),
    Signature(
        id="mpi_rank_failed",
        group="mpi",
        severity="fatal",
        role="consequence",
        literals=(
            b"returned a non-zero exit code",
            b"exited with non-zero status",
            b"Process name: [[",
        ),
        pattern=re.compile(
            r"processe?s? (?:has )?returned a non-zero exit code|exited with non-zero status"
            r"|Process name: \[\[\d{1,9},\d{1,9}\],(?P<rank>\d{1,7})\]"
        ),
        title="A rank ended with an error, and mpirun ended the others",
        cause="The program failed in one rank.",
        advice="Look for the first error of that rank, which mpirun calls `Process name:"
        " [[JOB,1],RANK]`; --tag-output tells the lines of the ranks apart.",
        example="Primary job  terminated normally, but 1 process returned a non-zero exit code",
        sources=_OMPI,
    ),
    Signature(
        id="mpi_abort",
        group="mpi",
        severity="fatal",
        role="consequence",
        literals=(
            b"MPI_ABORT was invoked",
            b"MPI_ERRORS_ARE_FATAL",
            b"application called MPI_Abort",
        ),
        pattern=re.compile(
            r"MPI_ABORT was invoked on rank (?P<rank>\d{1,7})|MPI_ERRORS_ARE_FATAL"
            r"|application called MPI_Abort\([^)]{0,60}\) - process (?P<process>\d{1,7})"
        ),
        title="MPI ended the program after an error",
        cause="The program called MPI_Abort, or an MPI call failed.",
        advice="The error stands above this line.",
        example="MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
        sources=_OMPI,
    ),
    Signature(
        id="mpi_shared_memory",
        group="mpi",
        severity="fatal",
        literals=(
            b"failed during shared memory initialization",
            b"session directory",
            b"opal_shmem_mmap",
        ),
        pattern=re.compile(
            r"failed during shared memory initialization"
            r"|(?:[Uu]nable to create|error creating)[^\n]{0,60}session directory"
            r"|opal_shmem_mmap[^\n]{0,80}(?:No space|failed)"
        ),
        title="Open MPI could not make its files in the temporary folder",
        cause="Its folder in /tmp or /dev/shm is full, or not writable.",
        advice="TMPDIR on a local disk with room, or OMPI_MCA_orte_tmpdir_base.",
        example="A system call failed during shared memory initialization that should not have.",
        sources=_OMPI,
    ),
    Signature(
        id="mpi_noise",
        group="mpi",
        severity="benign",
        literals=(
            b"initializing an OpenFabrics device",
            b"infiniband ports on a device",
            b"gds_ds12_lock_pthread",
            b"gds_ds21_lock_pthread",
        ),
        pattern=re.compile(
            r"error initializing an OpenFabrics device|infiniband ports on a device"
            r"|PMIX ERROR: [^\n]{0,40}gds_ds\d\d_lock_pthread"
        ),
        title="Open MPI grumbles about parts that it does not use",
        cause="The old openib transport, or a lock of PMIx's store.",
        advice="Nothing to do; OMPI_MCA_btl=^openib and PMIX_MCA_gds=hash silence it.",
        example="WARNING: There was an error initializing an OpenFabrics device.",
        sources=_OMPI,
    ),
)
