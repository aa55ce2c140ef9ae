"""Machines on this one that ssh reaches: `hpctrain lab up --ssh`.

Each has a network, processes, a host name, a home folder, `/tmp` and an sshd of its own.
"""
