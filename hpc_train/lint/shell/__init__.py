"""The shell language of a job script: words, commands, the syntax tree.

Here: syntax that is the same in every script.
Not here: the meaning of a program's options (`lint.options`, `lint.launches`).
"""
