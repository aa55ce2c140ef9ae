"""Code that runs inside a job; nothing else in the package imports it."""
