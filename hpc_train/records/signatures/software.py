"""Signatures of software that does not fit: libraries, modules, memory of workers, the network."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

SOFTWARE = (
    Signature(
        id="nccl_undefined_symbol",
        group="software",
        severity="fatal",
        literals=(b"undefined symbol: nccl",),
        pattern=re.compile(r"undefined symbol: (?P<symbol>nccl\w{1,40})"),
        title="PyTorch found an older NCCL than it was built with: {symbol} is missing",
        cause="A module, conda, or wheels for two versions of CUDA bring another libnccl.so.2.",
        advice="`ldd libtorch_cuda.so | grep nccl`; take the other NCCL out of LD_LIBRARY_PATH, or"
        " uninstall the second nvidia-nccl wheel.",
        example="ImportError: libtorch_cuda.so: undefined symbol: ncclCommRegister",
    ),
    Signature(
        id="undefined_symbol",
        group="software",
        severity="fatal",
        literals=(b"undefined symbol: ",),
        pattern=re.compile(r"undefined symbol: (?P<symbol>\w{1,200})"),
        title="A library does not fit the others: {symbol} is missing",
        cause="An extension built for another version of PyTorch, CUDA or the compiler.",
        advice="Rebuild the extension in this environment, or install the wheel for this version.",
        example="ImportError: flash.so: undefined symbol: _ZN2at4_ops5zeros4callEv",
    ),
    Signature(
        id="missing_module",
        group="software",
        severity="fatal",
        literals=(b"No module named ",),
        pattern=re.compile(
            r"(?:(?:ModuleNotFound|Import)Error|Error while finding module[^\n]{0,120}|"
            r"python[\d.]{0,5}|/python[\d.]{0,5}): ?\(?[^\n]{0,60}?"
            r"No module named '?(?P<module>[\w.-]{1,120})"
        ),
        title="Python finds no module {module}",
        cause="The environment is not active on the compute node, or not the one that you meant.",
        advice="Activate it inside the job script; `which python` in the job; PYTHONPATH.",
        example="ModuleNotFoundError: No module named 'apex'",
    ),
    Signature(
        id="missing_library",
        group="software",
        severity="fatal",
        literals=(b"cannot open shared object file",),
        pattern=re.compile(
            r"(?:ImportError: |OSError: |error while loading shared libraries: )"
            r"(?P<library>[^\s:]{1,200}): cannot open shared object file"
        ),
        title="The library {library} is not found",
        cause="A module is not loaded in the job, or the container lacks it.",
        advice="Load the modules in the job script; `ldd`; LD_LIBRARY_PATH on the compute node.",
        example="ImportError: libcudnn.so.9: cannot open shared object file: No such file or"
        " directory",
    ),
    Signature(
        id="dataloader_worker_killed",
        group="software",
        severity="fatal",
        literals=(b"DataLoader worker (pid",),
        pattern=re.compile(
            r"DataLoader worker \(pid\(?s?\)? ?(?P<pids>[\d, ]{1,80})\) "
            r"(?:is killed by signal: (?P<signal>[^\n.]{1,40})|exited unexpectedly)"
        ),
        title="A worker of the DataLoader was killed",
        cause="The host's memory ran out (Killed), or /dev/shm is too small (Bus error).",
        advice="Fewer workers, more `--mem`, larger /dev/shm (--shm-size, --ipc=host).",
        example="RuntimeError: DataLoader worker (pid 811) is killed by signal: Killed.",
        sources=("https://pytorch.org/docs/stable/data.html",),
    ),
    Signature(
        id="kernel_oom_killer",
        group="software",
        severity="fatal",
        literals=(b"Out of memory: Kill", b"Memory cgroup out of memory", b"invoked oom-killer"),
        pattern=re.compile(
            r"(?:Out of memory|[Mm]emory cgroup out of memory): Kill(?:ed)? "
            r"process (?P<pid>\d{1,10}) \((?P<name>[^)]{1,40})\)|invoked oom-killer"
        ),
        title="The kernel killed a process because the host's memory was full",
        cause="The job or the node ran out of memory; this is not the GPU's memory.",
        advice="More `--mem`, fewer workers of the DataLoader.",
        example="[ 9.1] Memory cgroup out of memory: Killed process 811 (python) total-vm:99kB",
    ),
    Signature(
        id="host_memory_error",
        group="software",
        severity="fatal",
        literals=(
            b"MemoryError",
            b"std::bad_alloc",
            b"can't allocate memory: you tried",
            b"Cannot allocate memory",
        ),
        pattern=re.compile(
            r"^(?:numpy\.\S{0,60})?_?(?:Array)?MemoryError\b|std::bad_alloc"
            r"|can't allocate memory: you tried to allocate (?P<bytes>\d{1,20}) bytes"
            r"|\[Errno 12\] Cannot allocate memory|fork: Cannot allocate memory"
        ),
        title="A process{of_rank} got no more memory from the host",
        cause="`--mem` is too small, or every rank loads all data.",
        advice="More `--mem`; memory maps or streaming instead of whole files in each rank.",
        example="RuntimeError: [enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't"
        " allocate memory: you tried to allocate 80000000 bytes.",
    ),
    Signature(
        id="internet_needed",
        group="software",
        severity="fatal",
        literals=(
            b"Max retries exceeded with url",
            b"LocalEntryNotFoundError",
            b"connect to 'http",
        ),
        pattern=re.compile(
            r"^(?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Timeout): [^\n]{0,300}?(?:Max retries exceeded"
            r" with url|couldn't connect to 'http)|^(?:\w{1,60}\.){0,8}LocalEntryNotFoundError: "
        ),
        title="The program ended because it did not reach the internet",
        cause="Compute nodes often reach no outside network.",
        advice="Download on a login node; HF_HUB_OFFLINE=1, WANDB_MODE=offline; the site's proxy.",
        example="requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443):"
        " Max retries exceeded with url: /api",
    ),
    Signature(
        id="no_internet",
        group="software",
        severity="benign",
        role="consequence",
        literals=(
            b"etrying (Retry(total=",
            b"Max retries exceeded with url",
            b"LocalEntryNotFound",
        ),
        pattern=re.compile(
            r"Retrying \(Retry\(total=|Max retries exceeded with url|LocalEntryNotFoundError"
        ),
        title="The program wants something from the internet, and the node has none",
        cause="Compute nodes often reach no outside network.",
        advice="Download on a login node; HF_HUB_OFFLINE=1, WANDB_MODE=offline. If the job goes on,"
        " only time is lost.",
        example="WARNING:urllib3.connectionpool:Retrying (Retry(total=2)) after connection broken"
        " by [Errno 101] Network is unreachable",
    ),
    Signature(
        id="cpp_exception",
        group="software",
        severity="fatal",
        literals=(b"  what():  ",),
        pattern=re.compile(r"^ {1,4}what\(\): {1,4}(?P<text>[^\n]{1,300})"),
        title="A library{of_rank} ended the process: {text}",
        cause="An exception in C++ that nobody caught.",
        advice="Read the text; TORCH_SHOW_CPP_STACKTRACES=1 or the core file shows where.",
        example="  what():  permissions: No such file or directory",
    ),
    Signature(
        id="training_diverged",
        group="software",
        severity="fatal",
        literals=(b", stopping training", b"Stopping training, loss"),
        pattern=re.compile(
            r"\b[Ll]oss is (?P<value>NaN|nan|-?inf), stopping training|Stopping training, loss"
        ),
        title="The program stopped because its loss was no number any more",
        cause="A learning rate that is too high, half precision without scaling, or broken data.",
        advice="Lower learning rate, gradient clipping, bf16; go back to a checkpoint before it."
        " If it is always one node, suspect its GPU.",
        example="Loss is nan, stopping training",
    ),
    Signature(
        id="loss_is_nan",
        group="software",
        severity="warning",
        literals=(b"oss is NaN", b"oss is nan", b"found NaN in", b"Found NaN"),
        pattern=re.compile(r"\b[Ll]oss is (?:NaN|nan)|\b[Ff]ound NaN in (?P<where>[^\n,]{1,80})"),
        title="The training met NaN",
        cause="A learning rate that is too high, half precision without scaling, or broken data.",
        advice="Lower learning rate, gradient clipping, bf16; go back to a checkpoint before it."
        " If it is always one node, suspect its GPU.",
        example="rank 3: found NaN in local grad norm in backward pass",
    ),
)
