"""Schema of model files: the format, its version, and the records of the header with the types of their fields."""

from __future__ import annotations

FORMAT = "mdlearn model"
VERSION = 5
NUMBER = (int, float)
CERTIFICATE = {
    "objective": NUMBER,
    "lower_bound": NUMBER,
    "gap": NUMBER,
    "kind": (str,),
    "tol": NUMBER,
    "converged": (bool,),
}
VOUCHED_BY = "vouched_by"
"""Field of a certificate in the header, a text, where a plugin vouches for it; files of others do without it."""
BUILT_IN_TASKS = ("classification", "regression")
"""Names of the tasks of mdlearn: files of their models have none."""
OWN_TASK = "task"
"""Value of the header's "multiclass" where a plugin brings the task; the field "task" has its name."""
OWN_WAY = "task_multiclass"
"""Field of the header beside a plugin's task: the way of several classes; files without it have "none"."""
HISTORY = {
    "iteration": (int,),
    "objective": NUMBER,
    "lower_bound": NUMBER,
    "gap": NUMBER,
    "elapsed": NUMBER,
    "problem": (int,),
}
"""Fields of both records and the types that they have in the header."""
