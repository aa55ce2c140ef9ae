"""Launchers: a topology -> argv and the variables that name each rank.

Here: one module for each launcher, with all facts about it; `base.Launcher` lists them.
Not here: whether a site offers a launcher (`plans.context`), the shell around it (`templates/`).
"""
