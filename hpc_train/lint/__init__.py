"""A job script, anybody's -> what is wrong with it, why, and what to write instead."""
