"""The commands of ``python -m mdlearn``: one class each, in the order of the list that ``--help`` prints.

Everything but `testing` may be imported here; the command line (`mdlearn.cli`) calls them. A plugin brings more through
the hook ``mdlearn_commands``.
"""
