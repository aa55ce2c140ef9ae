"""CIFAR-10 in its published form for Python: pickle files with rows of 3072 bytes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hpc_train.workload import WorkloadError

Bytes = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
FOLDER = "cifar-10-batches-py"
TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
TEST = ("test_batch",)


def check_cifar(path: Path) -> None:
    """Check that `path` contains the six files of CIFAR-10.

    Raises:
        WorkloadError: a file is absent; the message names the first one.
    """
    for name in TRAIN + TEST:
        file = path / FOLDER / name
        if not file.is_file():
            raise WorkloadError(
                f"--data {path}: {file} does not exist; "
                f"use digits, synthetic or a folder that contains {FOLDER}"
            )


def read_cifar(path: Path) -> tuple[Bytes, Labels, Bytes, Labels]:
    """Return training images (n, 3, 32, 32) and labels (n,), then those of the test set.

    Raises:
        WorkloadError: a file is absent, is not a batch of CIFAR-10, or calls other functions.
    """
    check_cifar(path)
    return *_read(path, TRAIN), *_read(path, TEST)


def _read(path: Path, names: tuple[str, ...]) -> tuple[Bytes, Labels]:
    parts = [_read_file(path / FOLDER / name) for name in names]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _read_file(file: Path) -> tuple[Bytes, Labels]:
    try:
        with file.open("rb") as stream:
            content = _ArraysOnly(stream, encoding="bytes").load()
        images = np.asarray(content[b"data"], dtype=np.uint8).reshape(-1, 3, 32, 32)
        labels = np.asarray(content[b"labels"], dtype=np.int64).reshape(len(images))
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError) as error:
        raise WorkloadError(f"{file}: not a CIFAR-10 batch ({error})") from error
    return images, labels


class _ArraysOnly(pickle.Unpickler):
    """An unpickler that allows only the functions that create arrays."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {"_reconstruct", "ndarray", "dtype", "_frombuffer"}
        known = module.split(".")[0] == "numpy" and name in allowed
        if not known and (module, name) != ("_codecs", "encode"):
            raise pickle.UnpicklingError(f"it calls {module}.{name}")
        return super().find_class(module, name)
