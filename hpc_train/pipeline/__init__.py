"""Composition of the stages: one module for each command, and the steps that commands share.

Here: calls of two or more stages, joined by values of `model`.
Not here: the rules of a stage (the stage's package), options and printing (`cli`).
"""
