"""Jobs of DeepSpeed, Lightning, Horovod, JAX, Ray and containers -> what a colleague would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.records.diagnosis.logs import EXIT_1, GPU_OOM, box, judged, roles, root, trace

KILLS = (
    "[2025-04-24 10:00:07,885] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 811\n"
    "[2025-04-24 10:00:07,900] [ERROR] [launch.py:321:sigkill_handler] ['python', '-u', "
    "'train.py', '--local_rank=7'] exits with return code = {code}\n"
)
SHUT_DOWN = (
    "RuntimeError: Horovod has been shut down. This was caused by an exception on one of the ranks"
)
PYXIS = "slurmstepd: error: pyxis: {text}\n"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (-9, "was killed (SIGKILL)"),
        (-11, "crashed in native code (SIGSEGV)"),
        (-7, "accessed memory that is not available"),
        (-6, "aborted (SIGABRT)"),
        (2, "exit code 2"),
        (97, "ended with exit code 97"),
    ],
)
def test_an_exit_code_is_told_in_words(tmp_path: Path, code: int, says: str) -> None:
    found = root(judged(tmp_path, "step 1\n" + KILLS.format(code=code)))
    assert found.id == "deepspeed_process_failed"
    assert says in found.title


def test_old_deepspeed_names_the_signal(tmp_path: Path) -> None:
    died = "Command '['python', 'train.py', '--local_rank=7']' died with <Signals.SIGKILL: 9>."
    found = root(judged(tmp_path, trace(f"subprocess.CalledProcessError: {died}")))
    assert (found.id, "(SIGKILL)" in found.title) == ("deepspeed_process_failed", True)


def test_an_exception_goes_before_the_exit_code_of_its_launcher(tmp_path: Path) -> None:
    text = trace("KeyError: 'input_ids'") + KILLS.format(code=1)
    found = judged(tmp_path, text)
    assert root(found).id == "python_exception"
    assert roles(found)["deepspeed_process_failed"] == "consequence"


def test_a_killed_rank_of_torchrun_is_the_root_of_lost_connections(tmp_path: Path) -> None:
    lost = "torch.distributed.DistBackendError: [2] is setting up NCCL communicator"
    found = root(judged(tmp_path, trace(lost, "[rank2]: ") + box(3, code=-9)))
    assert (found.id, found.evidence[0].rank) == ("torchrun_child_failed_rank", 3)
    assert found.title == "Rank 3 was killed (SIGKILL)"
    assert "memory" in found.message


def test_horovod_is_shut_down_by_another_rank(tmp_path: Path) -> None:
    text = trace(SHUT_DOWN, "[1,0]<stderr>:") + trace("IndexError: at 3", "[1,3]<stderr>:")
    found = judged(tmp_path, text)
    assert (root(found).id, root(found).evidence[0].rank) == ("python_exception", 3)
    assert roles(found)["horovod_shut_down"] == "consequence"


@pytest.mark.parametrize(
    ("lines", "name", "rank"),
    [
        ("[n1:811:0] Caught signal 11 (Segmentation fault: address not mapped)", "segm", None),
        ("[1,7]<stderr>:*** SIGSEGV (@0x0) received by PID 77; stack trace: ***", "segm", 7),
        ("Fatal Python error: Bus error", "bus error", None),
        (
            "/var/spool/job1/slurm_script: line 9: 12 Bus error      (core dumped) python a",
            "bus",
            None,
        ),
        ("step 3\nKilled", "killed (SIGKILL", None),
        ("Process name: [[29973,1],5]", "ended with an error", 5),
        (
            "mpirun noticed that process rank 7 with PID 0 on node n2 exited on signal 9 (Killed).",
            "Rank 7 on n2 was killed",
            7,
        ),
        ("ray.exceptions.RayActorError: The actor died unexpectedly", "worker of Ray", None),
        ("/job:jax_worker/task:3 has been set to ERROR in coordination service: X", "JAX", 3),
        (
            "0: MPICH ERROR [Rank 4] [job id 7.0] [Fri Jan 31 12:00:00 2025] [nid16] - Abort(4): x",
            "MPI of rank 0 ended the program: Abort(4)",
            0,
        ),
        ("(GTL DEBUG: 2) cuIpcOpenMemHandle: invalid argument", "MPI of rank 2 could not use", 2),
        ("ssh: connect to host n2 port 22: Connection refused", "by ssh", None),
        ("  what():  boost: No such file", "A library ended the process: boost: No such", None),
        ("Loss is nan, stopping training", "NaN or infinite", None),
        ("Error: Missing option '--lr'.", "arguments: Missing option '--lr'", None),
        ("0: MPID_Init(611).......:  PMI2 init failed: 1", "MPI could not be initialized", 0),
    ],
)
def test_how_a_process_ended(tmp_path: Path, lines: str, name: str, rank: int | None) -> None:
    found = root(judged(tmp_path, "hello\n" + lines + "\n" + EXIT_1))
    assert name in found.title
    assert found.evidence[0].rank == rank


@pytest.mark.parametrize("word", ["Killed: 0", "jobs Killed", "KilledWorker", "nothing Killed\n."])
def test_the_word_alone_kills_nobody(tmp_path: Path, word: str) -> None:
    assert judged(tmp_path, f"step 1\n{word}\nstep 2\n").outcome == "unknown"


def test_what_enroot_says_goes_before_what_pyxis_says(tmp_path: Path) -> None:
    said = (
        "child 811 failed with error code: 1",
        "container start failed with error code: 1",
        "printing enroot log file:",
        "    [INFO] Extracting",
        "    nvidia-container-cli: initialization error: driver not loaded",
        "    [ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1",
        "couldn't start container",
    )
    found = judged(tmp_path, "".join(PYXIS.format(text=text) for text in said) + EXIT_1)
    assert "driver not loaded" in root(found).title
    assert set(roles(found)) == {"enroot_error", "pyxis_container_start", "exit_error"}


def test_pyxis_alone_is_a_root(tmp_path: Path) -> None:
    text = PYXIS.format(text="couldn't start container") + EXIT_1
    assert root(judged(tmp_path, text)).id == "pyxis_container_start"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error No route to host",
            0,
        ),
        ("ibvwrap.c:9 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on", 0),
        ("ibvwrap.c:9 NCCL WARN Call to ibv_modify_qp failed with error No such device", 1),
        ("socket.cc:4 NCCL WARN Net : Connect to 10.1.1.2<4321> failed : Connection refused", 2),
        ("ofi:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument", 3),
    ],
)
def test_of_the_network(tmp_path: Path, text: str, name: int) -> None:
    names = ("nccl_ib_unreachable", "nccl_ib_memory", "nccl_cannot_connect", "nccl_ofi_error")
    assert root(judged(tmp_path, f"n1:811:902 [0] {text}\n")).id == names[name]


def test_a_lost_transfer_is_an_echo_of_the_rank_that_failed(tmp_path: Path) -> None:
    lost = "n1:811:902 [0] cq:1 NCCL WARN NET/OFI Request 0x7 completed with error. RC: 5.\n"
    assert root(judged(tmp_path, lost + trace(GPU_OOM, "[rank3]: "))).id == "cuda_oom"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("srun: error: Task launch for StepId=3.0 failed on node n7: Socket timed out on send/recv"
         " operation", "could not start the tasks"),
        ("srun: error: timeout waiting for task launch, started 0 of 1 tasks", "start the tasks"),
        ("srun: error: task 0 launch failed: Plugin initialization failed", "start the tasks"),
        ("srun: unrecognized option '--container-image=a.sqsh'", "--container-image=a.sqsh"),
        ("FATAL:   exec /.singularity.d/actions/run failed: no", "Apptainer stopped: exec"),
        ("FATAL:   container creation failed: no such hook", "container: no such hook"),
    ],
)  # fmt: skip
def test_of_the_start(tmp_path: Path, text: str, says: str) -> None:
    assert says in root(judged(tmp_path, text + "\n")).title


def test_a_module_that_is_missing_is_a_hint_not_the_root(tmp_path: Path) -> None:
    lmod = 'Lmod has detected the following error:  The following module(s) are unknown: "a/1"\n'
    found = judged(tmp_path, lmod + trace(GPU_OOM))
    assert root(found).id == "cuda_oom"
    assert roles(found)["environment_module"] == "other"


def test_the_check_that_failed_in_a_kernel_is_the_evidence(tmp_path: Path) -> None:
    check = (
        "../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [10,0,0], "
        "thread: [3,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
    )
    asserted = trace("RuntimeError: CUDA error: device-side assert triggered")
    found = root(judged(tmp_path, check * 3 + asserted))
    assert (found.id, found.evidence[0].line) == ("cuda_device_assert", 1)
    assert "srcSelectDimSize" in found.evidence[0].text


def test_a_broken_pipe_of_a_worker_is_an_echo(tmp_path: Path) -> None:
    pipe = trace("EOFError").replace("/work/model.py", "/lib/multiprocessing/connection.py")
    assert root(judged(tmp_path, pipe + trace("KeyError: 'x'"))).title == "KeyError: 'x'"


def test_the_database_of_miopen_is_why_it_failed(tmp_path: Path) -> None:
    warning = "MIOpen(HIP): Warning [A] /s/sqlite_db.cpp:212: Internal error while accessing SQLite"
    text = warning + " database: disk I/O error\n"
    assert judged(tmp_path, text).outcome == "unknown"
    found = judged(tmp_path, text + trace("RuntimeError: miopenStatusInternalError"))
    assert (root(found).id, roles(found)["miopen_database"]) == ("miopen_failed", "other")


def test_an_exception_of_a_library_at_the_very_end_does_no_harm(tmp_path: Path) -> None:
    done = "[after training is done] datetime: 2025-01-31 12:00:00\n"
    last = "terminate called after throwing an instance of 'c10::Error'\n  what():  no driver\n"
    assert judged(tmp_path, done + last + "Aborted (core dumped)\n").outcome == "success"
    found = judged(tmp_path, last + "Aborted (core dumped)\n")
    assert (root(found).id, roles(found)["exit_aborted"]) == ("cpp_exception", "consequence")
