"""Executor `hosts`: machines that ssh reaches, without a scheduler.

Here: locks, copies, starts, states and ends on the hosts. Not here: the script, which the template
`hosts.sh.j2` writes, and the profile's keys (`hpc_train.model.host_list`).
"""
