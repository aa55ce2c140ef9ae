"""Signatures of what holds the ranks together beside torchrun: DeepSpeed, Ray and others."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_FIRST = "Look for the first error of the other ranks, by time."

FRAMEWORKS = (
    Signature(
        id="deepspeed_process_failed",
        group="torchrun",
        severity="fatal",
        role="consequence",
        literals=(b"exits with return code = ", b" died with <Signals."),
        pattern=re.compile(
            r"\] exits with return code = (?P<exitcode>-?\d{1,4})"
            r"|CalledProcessError: Command '\[.{0,2000}died with <Signals\.\w{3,10}: "
            r"(?P<killed>\d{1,3})>"
        ),
        title="DeepSpeed's launcher: a process ended with an error",
        cause="1 is an exception in Python, 2 wrong arguments, -N a signal.",
        advice="Look for the first error of this process.",
        example="[2025-01-31 12:00:00,123] [ERROR] [launch.py:321:sigkill_handler] ['python',"
        " '-u', 'train.py', '--local_rank=3'] exits with return code = 1",
        sources=("https://www.deepspeed.ai/getting-started/",),
    ),
    Signature(
        id="ssh_unreachable",
        group="torchrun",
        severity="fatal",
        literals=(b"was not reachable via ssh", b"ssh: connect to host ", b"'ssh -o Password"),
        pattern=re.compile(
            r"host (?P<host>\S{1,80}) was not reachable via ssh|ssh: connect to host"
            r" (?P<other>\S{1,80}) port \d{1,5}: |Command 'ssh -o PasswordAuthentication=no"
            r" (?P<node>\S{1,80}) hostname' returned"
        ),
        title="The launcher could not log in to a node by ssh",
        cause="DeepSpeed and mpirun start other nodes by ssh: without a key, with another port, or"
        " where the site forbids it, they cannot.",
        advice="Let Slurm start the ranks (`srun`, or --launcher=torchrun); else test `ssh NODE"
        " hostname` without a password, from node to node.",
        example="ssh: connect to host n2 port 22: Connection refused",
        sources=("https://www.deepspeed.ai/getting-started/#resource-configuration-multi-node",),
    ),
    Signature(
        id="lightning_process_failed",
        group="torchrun",
        severity="fatal",
        role="consequence",
        literals=(b"Forcefully terminating all other processes",),
        pattern=re.compile(
            r"Child process with PID \d{1,10} terminated with code (?P<exitcode>-?\d{1,4})\."
        ),
        title="Lightning ends all ranks of the node, because one of them ended",
        cause="1 is an exception in Python, 2 wrong arguments, -N a signal.",
        advice="Look for the first error of this process.",
        example="[rank: 1] Child process with PID 811 terminated with code 1. Forcefully"
        " terminating all other processes to avoid zombies",
    ),
    Signature(
        id="lightning_told_to_stop",
        group="torchrun",
        severity="info",
        role="consequence",
        literals=(b"] Received SIGTERM: ",),
        pattern=re.compile(r"\[rank: (?P<rank>\d{1,7})\] Received SIGTERM: 15"),
        title="Lightning was told to stop",
        cause="Another rank failed, or Slurm or a person stopped the job.",
        advice="Look for what Slurm says at this time, and for errors of other ranks.",
        example="[rank: 0] Received SIGTERM: 15",
    ),
    Signature(
        id="ray_host_oom",
        group="software",
        severity="fatal",
        literals=(b"due to the node running low on memory", b"ray.exceptions.OutOfMemoryError"),
        pattern=re.compile(
            r"killed due to the node running low on memory|^ray\.exceptions\.OutOfMemoryError"
        ),
        title="Ray killed a worker because the host's memory was almost full",
        cause="The workers, their data or the object store need more than the node has.",
        advice="Fewer workers on a node, more `--mem`, a smaller object_store_memory;"
        " RAY_memory_usage_threshold only if you know what for.",
        example="ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on"
        " memory.",
        sources=("https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html",),
    ),
    Signature(
        id="ray_worker_died",
        group="software",
        severity="fatal",
        literals=(
            b"The actor died unexpectedly",
            b"RayActorError",
            b"WorkerCrashedError",
            b"Worker exit type: SYSTEM_ERROR",
        ),
        pattern=re.compile(
            r"The actor died unexpectedly|^ray\.exceptions\.(?:RayActorError|ActorDiedError"
            r"|WorkerCrashedError)|Worker exit type: SYSTEM_ERROR"
        ),
        title="A worker of Ray died without a word",
        cause="Mostly the kernel killed it because the host's memory ran out; else it crashed in"
        " native code.",
        advice="dmesg or `sacct -j JOB -o maxrss,state`; the worker's own files in"
        " /tmp/ray/session_latest/logs; more `--mem`.",
        example="ray.exceptions.RayActorError: The actor died unexpectedly before finishing this"
        " task.",
    ),
    Signature(
        id="horovod_shut_down",
        group="mpi",
        severity="fatal",
        role="consequence",
        literals=(b"Horovod has been shut down",),
        pattern=re.compile(r"Horovod has been shut down"),
        title="Horovod{of_rank} was shut down because another rank ended",
        cause="Another rank failed, or had fewer batches and was done before.",
        advice=_FIRST,
        example="RuntimeError: Horovod has been shut down. This was caused by an exception on one"
        " of the ranks",
        sources=("https://horovod.readthedocs.io/en/stable/troubleshooting_include.html",),
    ),
    Signature(
        id="horovod_stalled",
        group="mpi",
        severity="warning",
        literals=(b"waiting for remainder of ranks for more than",),
        pattern=re.compile(
            r"waiting for remainder of ranks for more than (?P<seconds>\d{1,6}) seconds"
        ),
        title="Ranks of Horovod wait for others since {seconds} s",
        cause="The ranks that are named after `Missing ranks` take another way, are slow or dead.",
        advice="Look at what the missing ranks did last; the same number of batches on all.",
        example="One or more tensors were submitted to be reduced, gathered or broadcasted by"
        " subset of ranks and are waiting for remainder of ranks for more than 60 seconds.",
        sources=("https://horovod.readthedocs.io/en/stable/stall_inspector.html",),
    ),
    Signature(
        id="jax_peer_died",
        group="software",
        severity="fatal",
        role="consequence",
        literals=(
            b"the JAX distributed service detected fatal errors",
            b"has been set to ERROR in coordination service",
        ),
        pattern=re.compile(
            r"JAX distributed service detected fatal errors|/task:(?P<rank>\d{1,7}) has been set to"
            r" ERROR in coordination service"
        ),
        title="JAX stopped because a process{of_rank} no longer answers",
        cause="That process died, was preempted, or stood still longer than the heartbeat allows.",
        advice="Look for the first error in the log of that process.",
        example="/job:jax_worker/replica:0/task:3 has been set to ERROR in coordination service:"
        " UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 heartbeat timeout.",
        sources=("https://docs.jax.dev/en/latest/multi_process.html",),
    ),
    Signature(
        id="jax_barrier_timeout",
        group="software",
        severity="fatal",
        literals=(b"Barrier timed out. ",),
        pattern=re.compile(
            r"Barrier timed out\. (?:Barrier_id|Id): (?!PjRT_Client_Connect|\[Init\])"
            r"(?P<barrier>[\w:./-]{1,80}[\w/-])"
        ),
        title="Not all processes of JAX came to the barrier {barrier}",
        cause="A process failed before, is much slower (reading, compiling, saving), or takes"
        " another way through the program.",
        advice="The lines after it name the tasks that did not come: read their logs.",
        example="jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out."
        " Barrier_id: multihost_broadcast_sync0. Timed out task names:",
        sources=("https://docs.jax.dev/en/latest/multi_process.html",),
    ),
    Signature(
        id="jax_connect_timeout",
        group="software",
        severity="fatal",
        literals=(b"Barrier timed out. ",),
        pattern=re.compile(r"Barrier timed out\. (?:Barrier_id: PjRT_Client_Connect|Id: \[Init\])"),
        title="Not all processes of JAX came to jax.distributed.initialize",
        cause="Fewer processes were started than num_processes says, the coordinator cannot be"
        " reached, or one of them failed before.",
        advice="The lines after it name the missing tasks: read their logs; the number of tasks ="
        " num_processes; one reachable coordinator_address.",
        example="jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out."
        " Barrier_id: PjRT_Client_Connect. Timed out task names:",
        sources=("https://docs.jax.dev/en/latest/multi_process.html",),
    ),
)
