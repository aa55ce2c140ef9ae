"""logs -> Record: reads log files and yields the measurements that they state.

Here: whatever reads the lines of a log: measurements, failures, the transport of NCCL.
Not here: statistics of measurements (`tables`), the files of a run folder (`runs`).
"""
