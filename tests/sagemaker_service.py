"""The SageMaker of the lab in this process, for tests that start no container."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hpc_train.lab.sagemaker.service import TrainingService, handler

REGION = "eu-west-1"


class Served(NamedTuple):
    """The service, and the calls that it has answered, by their names."""

    service: TrainingService
    calls: list[str]


@contextmanager
def serving(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Answer the calls of boto3 in this process and its children; `folder` has faults.json."""
    (folder / "s3").mkdir(parents=True)
    service = TrainingService(folder, REGION)
    calls: list[str] = []

    class Handler(handler(service)):  # type: ignore[misc]
        def log_message(self, format: str, *args: Any) -> None:
            calls.append(self.headers.get("X-Amz-Target") or self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "lab")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "lab")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    try:
        yield Served(service, calls)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
