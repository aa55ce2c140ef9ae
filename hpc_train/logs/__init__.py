"""logs -> Record: reads log files and yields the measurements in them.

Here: all readers of log lines: of measurements, failures, and the transport of NCCL.
Not here: statistics of measurements (`scaling`), the files of a run folder (`runs`).
"""
