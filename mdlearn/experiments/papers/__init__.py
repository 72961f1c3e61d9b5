"""The papers' tables and figures again: ``python -m mdlearn reproduce NAME``."""
