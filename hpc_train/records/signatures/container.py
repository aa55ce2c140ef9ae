"""Signatures of containers: pyxis and enroot, Apptainer, Docker, images of another machine."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_PYXIS = ("https://github.com/NVIDIA/pyxis",)
_APPTAINER = ("https://apptainer.org/docs/user/latest/",)

CONTAINER = (
    Signature(
        id="pyxis_invalid_mount",
        group="container",
        severity="fatal",
        literals=(
            b"pyxis: mount source must be",
            b"pyxis: could not add mount",
            b"Invalid --container-mounts",
        ),
        pattern=re.compile(
            r"pyxis: mount source must be|pyxis: could not add mount entry: (?P<entry>\S{1,300})"
            r"|Invalid --container-mounts argument: (?P<mounts>\S{1,400})"
        ),
        title="A mount of --container-mounts is not valid",
        cause="The source is neither absolute (`/data`) nor begins with `./`.",
        advice="Write `/full/path:/inside`; an empty variable in it leaves half a path.",
        example="srun: error: pyxis: mount source must be a relative path, an absolute path,"
        ' "tmpfs" or "umount"',
        sources=_PYXIS,
    ),
    Signature(
        id="pyxis_image_import",
        group="container",
        severity="fatal",
        literals=(b"pyxis: failed to import", b"pyxis: image import failed", b"[ERROR] URL http"),
        pattern=re.compile(
            r"pyxis: (?:failed to import|image import failed)|\[ERROR\] URL https?://(?P<url>\S{1,200})"
        ),
        title="enroot could not get the image of the container",
        cause="A wrong name (`registry#image:tag`), no login, or no network on the node.",
        advice="`enroot import` on a login node, and name the .sqsh file; ~/.config/enroot/"
        ".credentials for private ones.",
        example="srun: error: pyxis: failed to import docker image",
        sources=_PYXIS,
    ),
    Signature(
        id="enroot_error",
        group="container",
        severity="fatal",
        literals=(b"pyxis:    ",),
        pattern=re.compile(
            r"pyxis: {3,8}(?P<text>(?:enroot-\w{1,20}|nvidia-container-cli|mksquashfs|\[ERROR\])"
            r"[^\n]{1,200})"
        ),
        title="enroot could not start the container: {text}",
        cause="A hook of the site, a folder or a program that the image does not have, or no room"
        " for it.",
        advice="Try it with `srun -N1 -n1 --container-image=…` on that node; without a shell in"
        " the image: --no-container-entrypoint.",
        example="slurmstepd: error: pyxis:     enroot-switchroot: failed to execute: /bin/sh: No"
        " such file or directory",
        sources=_PYXIS,
    ),
    Signature(
        id="pyxis_container_start",
        group="container",
        severity="fatal",
        role="consequence",
        literals=(
            b"pyxis: couldn't start container",
            b"pyxis: container start failed",
            b"pyxis: child ",
        ),
        pattern=re.compile(
            r"pyxis: (?:couldn't start container|container start failed|child \d{1,9} failed with)"
        ),
        title="pyxis could not start the container",
        cause="enroot says why in the lines beside it: a hook, a mount or no room for the image.",
        advice="Read the lines of enroot; ENROOT_DATA_PATH and ENROOT_RUNTIME_PATH need room.",
        example="slurmstepd: error: pyxis: couldn't start container",
        sources=_PYXIS,
    ),
    Signature(
        id="pyxis_error",
        group="container",
        severity="fatal",
        literals=(b"error: pyxis: ",),
        pattern=re.compile(r"error: pyxis: (?!printing |if the image| )(?P<text>[^\n]{1,200})"),
        title="pyxis says: {text}",
        cause="An option of the container, or enroot on the node.",
        advice="Read the lines around it; try the container with `srun -N1 -n1"
        " --container-image=…`.",
        example="srun: error: pyxis: unable to create user namespace",
        sources=_PYXIS,
    ),
    Signature(
        id="apptainer_mount",
        group="container",
        severity="fatal",
        literals=(b"FATAL:   container creation failed", b"while mounting"),
        pattern=re.compile(
            r"FATAL: {1,4}(?:container creation failed: |(?=while [^\n]{0,80}mount))"
            r"(?P<reason>[^\n]{1,200})"
        ),
        title="Apptainer could not put the container together: {reason}",
        cause="A folder of `--bind` does not exist on the node, or the file system forbids it.",
        advice="`ls` the folder in the job, on every node; leave out what is not there.",
        example="FATAL:   container creation failed: mount hook function failure: mount /scratch->"
        "/scratch error: no such file or directory",
        sources=_APPTAINER,
    ),
    Signature(
        id="apptainer_image",
        group="container",
        severity="fatal",
        literals=(b"FATAL:   could not open image", b"FATAL:   While "),
        pattern=re.compile(
            r"FATAL: {1,4}(?:could not open image (?P<image>\S{1,300})|While [^\n]{1,200})"
        ),
        title="Apptainer could not open or build the image",
        cause="The file is missing on the node, is not finished, or there is no network.",
        advice="Pull it on a login node into a shared file system; give the full path.",
        example="FATAL:   could not open image /proj/pt.sif: failed to retrieve path",
        sources=_APPTAINER,
    ),
    Signature(
        id="apptainer_stopped",
        group="container",
        severity="fatal",
        literals=(b"FATAL:   ",),
        pattern=re.compile(r"^FATAL: {3}(?P<reason>[^\n]{1,200})"),
        title="Apptainer stopped: {reason}",
        cause="An option, the image or the node does not fit.",
        advice="Run the same command by hand on a node of the job, with `apptainer -d`.",
        example="FATAL:   exec /.singularity.d/actions/run failed: no such file or directory",
        sources=_APPTAINER,
    ),
    Signature(
        id="apptainer_no_gpu",
        group="container",
        severity="warning",
        literals=(b"Could not find any nv files", b"Could not find any rocm files", b"any NVIDIA "),
        pattern=re.compile(r"Could not find any (?:nv files|rocm files|NVIDIA (?:bin|lib)\w{1,8})"),
        title="Apptainer found no driver for the GPU on the host",
        cause="The node has no GPU, or its driver is not where Apptainer looks (ldconfig).",
        advice="Run on a GPU node; `--nvccli`, or ask the site.",
        example="INFO:    Could not find any nv files on this host!",
        sources=_APPTAINER,
    ),
    Signature(
        id="wrong_architecture",
        group="container",
        severity="fatal",
        literals=(b"xec format error", b"cannot execute binary file"),
        pattern=re.compile(r"[Ee]xec format error|cannot execute binary file"),
        title="A program was built for another kind of processor",
        cause="An x86 image or environment on an ARM node (Grace), or the other way round.",
        advice="Build or pull for the node's architecture (`--platform linux/arm64`).",
        example="exec /usr/bin/bash: exec format error",
    ),
    Signature(
        id="glibc_too_old",
        group="container",
        severity="fatal",
        literals=(b"' not found (required by",),
        pattern=re.compile(r"version `(?P<symbol>(?:GLIBC|GLIBCXX|CXXABI)_[\d.]{1,12})' not found"),
        title="The system's C library is too old: {symbol} is missing",
        cause="The program was built on a newer system, or another libstdc++ is found first.",
        advice="A container, or a build for this system; for GLIBCXX the library of conda first.",
        example="python: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by libfoo.so)",
    ),
)
