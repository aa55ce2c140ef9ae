"""Code that runs inside a job; nothing else in the package imports it.

Here: the reference trainer, the smoke job and the event emitter; only the workload uses torch.
Not here: anything that runs on the login node.
"""
