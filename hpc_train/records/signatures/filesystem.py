"""Signatures of file systems: full, over quota, stale, missing; shared memory as well."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

FILESYSTEM = (
    Signature(
        id="disk_quota",
        group="filesystem",
        severity="fatal",
        literals=(b"Disk quota exceeded",),
        pattern=re.compile(r"Disk quota exceeded(?:: '(?P<path>[^'\n]{1,300})')?"),
        title="Your quota on a file system is used up",
        cause="Too many bytes or too many files; caches in the home folder count as well.",
        advice="`quota` or the site's own command; put HF_HOME, TMPDIR, caches and checkpoints on"
        " scratch.",
        example="OSError: [Errno 122] Disk quota exceeded: '/home/ann/ckpt.pt'",
    ),
    Signature(
        id="shared_memory_full",
        group="filesystem",
        severity="fatal",
        literals=(
            b"insufficient shared memory (shm)",
            b"unable to open shared memory object",
            b"unable to mmap",
            b"unable to write to file </torch_",
        ),
        pattern=re.compile(
            r"insufficient shared memory \(shm\)|unable to open shared memory object "
            r"<(?P<object>/torch_[\w.-]{1,80})>|unable to (?:mmap|write to file)[^\n]{0,60}</torch_"
        ),
        title="Workers of the DataLoader have no shared memory left",
        cause="The node's /dev/shm is small (containers: 64 MB), or the limit of open files is.",
        advice="--shm-size=16g or --ipc=host; `ulimit -n 65536`;"
        " torch.multiprocessing.set_sharing_strategy('file_system').",
        example="RuntimeError: unable to open shared memory object </torch_811_9> in read-write"
        " mode",
    ),
    Signature(
        id="shared_memory_denied",
        group="filesystem",
        severity="fatal",
        literals=(b"shm_open",),
        pattern=re.compile(r"\bshm_open\b[^\n]{0,200}?: Permission denied"),
        title="A process{of_rank} may not use /dev/shm",
        cause="A segment of the same name belongs to another user, or /dev/shm is not writable in"
        " the job or container.",
        advice="`ls -ld /dev/shm; ls -l /dev/shm` on the node: remove what is left over, ask the"
        " site for mode 1777; bind /dev/shm into the container.",
        example="OMP: System error #13: shm_open: Permission denied",
    ),
    Signature(
        id="no_space_left",
        group="filesystem",
        severity="fatal",
        literals=(b"No space left on device",),
        pattern=re.compile(r"No space left on device(?:: '(?P<path>[^'\n]{1,300})')?"),
        title="A file system is full",
        cause="The disk, /tmp or /dev/shm has no room, or no more files (inodes).",
        advice="`df -h` and `df -i` on the node; TMPDIR, TRITON_CACHE_DIR and the checkpoints"
        " elsewhere.",
        example="OSError: [Errno 28] No space left on device: '/tmp/x'",
    ),
    Signature(
        id="stale_file_handle",
        group="filesystem",
        severity="fatal",
        literals=(
            b"tale file handle",
            b"ransport endpoint is not connected",
            b"transport endpoint",
        ),
        pattern=re.compile(
            r"[Ss]tale file handle|(?:[Tt]ransport endpoint is not connected"
            r"|Cannot send after transport endpoint shutdown)"
        ),
        title="A node lost a network file system",
        cause="The server or the mount on this node failed, or a file was replaced while in use.",
        advice="Submit again without the node; tell the site; do not change files in use.",
        example="OSError: [Errno 116] Stale file handle: '/scratch/data.bin'",
    ),
    Signature(
        id="input_output_error",
        group="filesystem",
        severity="fatal",
        literals=(b"Input/output error",),
        pattern=re.compile(r"Input/output error(?:: '(?P<path>[^'\n]{1,300})')?"),
        title="A file could not be read or written",
        cause="A broken disk, or a file system that is in trouble.",
        advice="Read the file on another node; tell the site which node and file.",
        example="OSError: [Errno 5] Input/output error: '/scratch/data.bin'",
    ),
    Signature(
        id="too_many_open_files",
        group="filesystem",
        severity="fatal",
        literals=(b"Too many open files",),
        pattern=re.compile(r"Too many open files"),
        title="A process{of_rank} has too many files open",
        cause="Each worker and each tensor in shared memory holds one; the limit is low.",
        advice="`ulimit -n 65536` in the job; fewer workers; set_sharing_strategy('file_system').",
        example="OSError: [Errno 24] Too many open files",
    ),
    Signature(
        id="dali_file_missing",
        group="filesystem",
        severity="fatal",
        literals=(b'Assert on "fp_ != nullptr"', b"Could not open file "),
        pattern=re.compile(
            r"Could not open file (?P<path>\S{1,300}?):? No such file|Assert on \"fp_ != nullptr\""
        ),
        title="DALI cannot open a file of the data set",
        cause="The path is wrong, or not mounted in the container.",
        advice="`ls` the path inside the job and the container; check --container-mounts.",
        example='Assert on "fp_ != nullptr" failed: Could not open file /data/train.rec: No such'
        " file or directory",
    ),
    Signature(
        id="file_missing",
        group="filesystem",
        severity="fatal",
        literals=(b"FileNotFoundError: ", b"can't open file '"),
        pattern=re.compile(
            r"FileNotFoundError: [^\n]{0,120}?'(?P<path>[^'\n]{1,300})'|FileNotFoundError: "
            r"|can't open file '(?P<script>[^'\n]{1,300})'"
        ),
        title="A file does not exist where the program looks",
        cause="A relative path in another working folder, or a file system that the node or the"
        " container does not have.",
        advice="Full paths; `ls` it inside the job; --chdir; the container's mounts.",
        example="FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'",
    ),
    Signature(
        id="permission_denied",
        group="filesystem",
        severity="fatal",
        literals=(b"PermissionError: ",),
        pattern=re.compile(r"PermissionError: \[Errno 13\][^\n]{0,60}?: '(?P<path>[^'\n]{1,300})'"),
        title="The job may not use {path}",
        cause="The file belongs to somebody else, or a cache shared by users is in the way.",
        advice="Own folders for caches and output (HF_HOME, TORCH_HOME, TRITON_CACHE_DIR).",
        example="PermissionError: [Errno 13] Permission denied: '/tmp/cache/lock'",
    ),
)
