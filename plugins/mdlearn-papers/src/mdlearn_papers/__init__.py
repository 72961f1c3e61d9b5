"""The papers' tables and figures again: ``python -m mdlearn reproduce NAME``."""

import mdlearn

requires_api = 1


@mdlearn.hookimpl
def mdlearn_commands():
    """The command `reproduce`."""
    from mdlearn_papers.command import Reproduce

    return [Reproduce]
