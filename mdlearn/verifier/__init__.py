"""An independent check of model files: `checker.py` is one file that needs NumPy alone, and runs alone as well."""
