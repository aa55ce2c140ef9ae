"""The share of the test set that a trained model predicts right, over all ranks."""

from __future__ import annotations

import torch
from torch import nn

from hpc_train.workload.precision import parameter_type
from hpc_train.workload.process_group import RankGroup
from hpc_train.workload.text_data import Tokens
from hpc_train.workload.training_data import TrainingData

TEST_BATCH = 512
TEST_TOKENS = 4096


@torch.no_grad()
def measure_accuracy(
    model: nn.Module, test: TrainingData, group: RankGroup, precision: str
) -> float:
    """Return the fraction, 0..1, of the labels or tokens of the test set that is predicted right.

    Each sample is counted once: rank r takes samples r, r + world_size, ... and the counts are
    summed. Rank 0 alone would take world_size times as long while the others hold their devices
    and wait. `model` must be whole and not wrapped: the shares may differ by a sample.
    """
    model.eval()
    mine = list(range(group.rank, len(test), group.world_size))
    correct = predicted = 0
    size = TEST_BATCH
    if isinstance(test, Tokens):
        size = max(1, TEST_TOKENS // test.length)
    for start in range(0, len(mine), size):
        pair = test.__getitems__(mine[start : start + size])
        inputs, targets = test.prepare(pair, group.device, parameter_type(precision))
        correct += int((model(inputs).argmax(dim=-1) == targets).sum())
        predicted += targets.numel()
    right, seen = group.sums([correct, predicted])
    return right / seen
