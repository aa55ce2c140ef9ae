"""A small PBS on this machine, for tests and to try a job: it needs no root and no installation.

It runs scripts on nodes that are names on this machine, answers as OpenPBS 23.06 does, and refuses
what that refuses. It is not PBS: there is no hold in time, no reservation, no accounting.
"""
