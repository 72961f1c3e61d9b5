"""Leave-one-out (LOO): by formula, by paths from one optimum to those without a row, by refits, and its bound."""
