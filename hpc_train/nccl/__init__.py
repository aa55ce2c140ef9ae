"""NCCL, RCCL and OFI plug-in lines -> the transport of a run.

Here: messages and channels of NCCL's log, and their comparison with the site's network.
Not here: tables of nccl-tests (`logs.formats`), failures of NCCL (`data/signatures/nccl.yaml`).
"""
