"""Declaration of an objective: its parameters, terms and grids, with the check of what a class declares."""
