"""Lines of NCCL, RCCL and the OFI plug-in -> the transports that a run used.

Here: reading, counting and judging these lines. Not here: benchmarks such as nccl-tests, whose
tables `records.parsers` reads.
"""
