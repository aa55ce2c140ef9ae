"""One module per kind of log; each is registered in `hpc_train.registry`."""
