"""The Python interface: `hpc_train.submit`, `run`, `study`, `report`, `compare`, `diagnose`, …

Here: the functions and classes that `import hpc_train` offers, in the words of the commands, and
how a notebook shows them. They print nothing and raise `HpcTrainError`.
Not here: decisions and files (the subjects below), options and printing (`cli`).
"""

import logging

# Without a handler, Python would print the warnings that the package logs.
logging.getLogger("hpc_train").addHandler(logging.NullHandler())
