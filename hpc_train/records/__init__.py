"""Logs -> Record: reads log files and yields the measurements that they contain.

Here: finding, reading and parsing logs, failure signatures, diagnosis, NCCL transport. Not here:
statistics over records (`tables`) and their presentation (`reports`).
"""
