"""Memory of tensors and bytes sent, as the trainer reports them."""

from __future__ import annotations

import socket

import torch
from torch import nn

from hpc_train.workload.model_operations import model_conditions
from hpc_train.workload.resource_use import sent_bytes, tensor_bytes


def test_gradients_count_and_views_do_not() -> None:
    before = tensor_bytes()
    while before != (before := tensor_bytes()):  # tensors of other tests end by and by
        pass
    weight = nn.Parameter(torch.ones(1000, dtype=torch.float64))
    view = weight.detach()[:10]
    assert tensor_bytes() - before == 8000
    (weight.sum() + view.sum()).backward()  # type: ignore[no-untyped-call]
    assert tensor_bytes() - before == 16000


def test_what_a_socket_sends_is_counted() -> None:
    before = sent_bytes()
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            accepted, _ = server.accept()
            with accepted:
                client.sendall(bytes(100_000))
                assert len(accepted.recv(100_000, socket.MSG_WAITALL)) == 100_000
    assert sent_bytes() - before >= 100_000


def test_the_operations_of_a_linear_layer_need_no_memory_and_no_random_number() -> None:
    state = torch.random.get_rng_state()
    found = model_conditions(lambda: nn.Linear(30, 20, bias=False), torch.ones(1, 30))
    assert found == {"parameters": 600, "flops_per_sample": 2 * 2 * 600}
    assert torch.equal(torch.random.get_rng_state(), state)
