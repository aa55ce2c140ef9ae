"""logs -> Record: reads log files and yields the measurements that they state."""
