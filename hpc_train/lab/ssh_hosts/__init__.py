"""Machines on this one that ssh reaches: `hpctrain lab up --ssh`.

Here: for each, a network, processes, a host name, a home folder, `/tmp` and an sshd of its own.
Not here: runs on such machines (`submissions.hosts`).
"""
