"""Signatures of what programs of training stumble over: checkpoints, DDP, compilers, accounts."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

TRAINING = (
    Signature(
        id="checkpoint_not_written",
        group="filesystem",
        severity="fatal",
        literals=(b"PytorchStreamWriter failed", b"Parent directory ", b" cannot be opened."),
        pattern=re.compile(
            r"PytorchStreamWriter failed writing file (?P<entry>\S{1,200})"
            r"|RuntimeError: Parent directory (?P<folder>\S{1,300}) does not exist"
            r"|RuntimeError: File (?P<path>\S{1,300}) cannot be opened\."
        ),
        title="A checkpoint could not be written",
        cause="The file system is full or over quota, the folder does not exist, or the server"
        " failed for a moment.",
        advice="`quota`, `df -h` and `df -i` for that folder; make it before the training; keep"
        " fewer checkpoints.",
        example="RuntimeError: [enforce fail at inline_container.cc:857] . PytorchStreamWriter"
        " failed writing file data/322: file write failed",
    ),
    Signature(
        id="checkpoint_unreadable",
        group="filesystem",
        severity="fatal",
        literals=(b"PytorchStreamReader failed", b"Error while deserializing header"),
        pattern=re.compile(
            r"PytorchStreamReader failed (?P<what>[^\n]{1,80})|Error while deserializing header"
        ),
        title="A checkpoint is not whole",
        cause="It was cut: the job that wrote it was killed, the disk was full, or a download"
        " stopped half way (Git LFS leaves a small text file).",
        advice="`ls -l` its size; go on from the one before; write to a temporary name and rename.",
        example="RuntimeError: PytorchStreamReader failed reading zip archive: failed finding"
        " central directory",
    ),
    Signature(
        id="checkpoint_mismatch",
        group="python",
        severity="fatal",
        literals=(b"Error(s) in loading state_dict for ",),
        pattern=re.compile(
            r"RuntimeError: Error\(s\) in loading state_dict for (?P<model>[\w.]{1,80})"
        ),
        title="The checkpoint does not fit the model {model}",
        cause="Its sizes or names differ: another configuration or vocabulary, another layout of"
        " tensor parallelism, or a `module.` of DDP in the names.",
        advice="Read the lines after it: `size mismatch`, `Missing` and `Unexpected key(s)` name"
        " what differs.",
        example="RuntimeError: Error(s) in loading state_dict for GPT:",
    ),
    Signature(
        id="ddp_unused_parameters",
        group="python",
        severity="fatal",
        literals=(b"Expected to have finished reduction in the prior iteration",),
        pattern=re.compile(r"Expected to have finished reduction in the prior iteration"),
        title="DDP{of_rank}: some parameters took no part in a step",
        cause="A branch of the model was not used, so that its gradients never came.",
        advice="find_unused_parameters=True, or leave these parameters out;"
        " TORCH_DISTRIBUTED_DEBUG=DETAIL names them.",
        example="RuntimeError: Expected to have finished reduction in the prior iteration before"
        " starting a new one.",
        sources=("https://pytorch.org/docs/stable/notes/ddp.html",),
    ),
    Signature(
        id="compiler_missing",
        group="software",
        severity="fatal",
        literals=(
            b"Ninja is required to load",
            b"Failed to find C compiler",
            b"CUDA_HOME environment variable is not set",
        ),
        pattern=re.compile(
            r"(?:RuntimeError|OSError|EnvironmentError): (?P<what>Ninja is required to load"
            r"|Failed to find C compiler|CUDA_HOME environment variable is not set)"
        ),
        title="A part of the program wants to be compiled, and a tool for it is missing",
        cause="Triton, DeepSpeed and extensions of PyTorch build kernels when they are first used.",
        advice="Load gcc and cuda modules in the job (CC, CUDA_HOME), install ninja; or build"
        " ahead, on a login node or in the image.",
        example="RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get"
        " it)",
    ),
    Signature(
        id="hub_access",
        group="software",
        severity="fatal",
        literals=(b"GatedRepoError", b"RepositoryNotFoundError", b"gated repo for url"),
        pattern=re.compile(
            r"^(?:huggingface_hub\.(?:errors|utils\._errors)\.)?(?:GatedRepo|RepositoryNotFound)Error:"
            r"|^OSError: You are trying to access a gated repo"
        ),
        title="A model of the Hugging Face hub is not open to this account",
        cause="Its licence is not accepted, no token is set in the job, or its name is wrong.",
        advice="Accept the licence on its page; HF_TOKEN in the job, or download it on a login node"
        " and give the path.",
        example="huggingface_hub.errors.GatedRepoError: 401 Client Error.",
    ),
    Signature(
        id="wandb_login",
        group="software",
        severity="fatal",
        literals=(b"wandb.errors.", b"api_key not configured"),
        pattern=re.compile(r"wandb\.errors\.\S{0,30}Error: [^\n]{0,60}api_key not configured"),
        title="Weights & Biases has no key in the job",
        cause="`wandb login` was not done for this account, or its file is not in the container.",
        advice="WANDB_API_KEY in the job, or WANDB_MODE=offline.",
        example="wandb.errors.errors.UsageError: api_key not configured (no-tty). call"
        " wandb.login(key=[your_api_key])",
    ),
    Signature(
        id="environment_module",
        group="software",
        severity="warning",
        literals=(
            b"Lmod has detected the following error",
            b"Unable to locate a modulefile",
            b"has not been properly configured to use 'conda",
            b"Run 'conda init' before",
        ),
        pattern=re.compile(
            r"Lmod has detected the following error: {1,4}(?P<text>[^\n]{0,160})"
            r"|Unable to locate a modulefile for|has not been properly configured to use 'conda"
            r"|Run 'conda init' before"
        ),
        title="A module or an environment could not be loaded in the job",
        cause="Its name is another on this system, or the shell of the job does not know conda.",
        advice="`module spider NAME`; `source $(conda info --base)/etc/profile.d/conda.sh` before"
        " `conda activate`.",
        example="Lmod has detected the following error:  The following module(s) are unknown:"
        ' "cuda/99"',
    ),
)
