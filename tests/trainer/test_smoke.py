"""Which interface the bytes went over."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

pytest.importorskip("torch")

from hpc_train.trainer import smoke
from hpc_train.trainer.smoke import busiest, sent_bytes


def test_what_is_sent_over_loopback_is_seen() -> None:
    before = sent_bytes()
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            end, _ = server.accept()
            with end:
                client.settimeout(240)
                for _ in range(64):
                    client.sendall(bytes(65536))
                    received = 0
                    while received < 65536:
                        received += len(end.recv(65536))
    assert busiest(before, sent_bytes()) == "lo"


def test_chatter_is_no_answer() -> None:
    assert busiest({"eth0": 5, "ib0": 7}, {"eth0": 1_000, "ib0": 900_000}) == ""
    assert busiest({"eth0": 5}, {"eth0": 1_000, "mlx5_0": 2_000_000}) == "mlx5_0"
    assert busiest({}, {}) == ""


def test_words_of_all_ports_of_an_adapter_are_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, words in (("mlx5_0/ports/1", "100"), ("mlx5_0/ports/2", "20"), ("x/ports/1", "?")):
        folder = tmp_path / place / "counters"
        folder.mkdir(parents=True)
        (folder / "port_xmit_data").write_text(f"{words}\n")
    monkeypatch.setattr(smoke, "ADAPTERS", tmp_path)
    found = sent_bytes()
    assert (found["mlx5_0"], found["x"]) == (480, 0)
