"""Reports: one HTML file that says what a model is, how good, and what is proven of it.

May import the model, margins and selection; the public API calls it.
"""
