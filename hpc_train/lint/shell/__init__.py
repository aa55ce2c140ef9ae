"""The shell language of a job script: words, commands, the syntax tree."""
