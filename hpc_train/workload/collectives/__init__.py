"""Benchmark of the collectives of torch.distributed, with the output of nccl-tests.

Here: `python -m hpc_train.workload.collectives allreduce`, which each rank of a job runs.
Not here: the factors and sizes (`model.collectives`), and the trainer.
"""
