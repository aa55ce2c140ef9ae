"""NCCL, RCCL and OFI plug-in lines -> which way the data of a run went."""
