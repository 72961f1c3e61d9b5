"""Random problems for every objective and engine, and what has to hold for the answers; `run.py` is the program."""
