"""The command line: options -> one call of the pipeline -> print."""
