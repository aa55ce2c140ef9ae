"""Executor `hosts`: machines that ssh reaches, without a scheduler.

Here: locks, copies, starts, states and ends of runs on the hosts.
Not here: the script (template `hosts.sh.j2`), the keys of the profile (`sites.profile`).
"""
