"""Schema of model files: the format, its version, the types of the header's fields, and the errors of other files."""

from __future__ import annotations

from typing import Any

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
DISTANCE = "distance"
"""Field of a certificate in the header, a number >= 0; files of older versions do without it."""
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


class UnreadableModel(Exception):
    """Error whose text says, as the second half of a sentence, what is wrong with a model file."""


class FutureFormat(UnreadableModel):
    """Error of a model file that a later version of mdlearn wrote."""


def header_field(header: dict[str, Any], name: str, types: tuple[type, ...]) -> Any:
    """Field of a model file's header, which needs to have one of these types."""
    if name not in header:
        raise UnreadableModel(f"its header lacks {name!r}")
    return check_header_type(header[name], types, name)


def check_header_type(value: Any, types: tuple[type, ...], name: str) -> Any:
    """Check the type of a value of a model file's header; `name` is its name in errors."""
    # In Python, True is an int.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise UnreadableModel(f"its header gives {name!r} as {value!r}")
    return value


def header_choice(value: Any, choices: tuple[str, ...]) -> Any:
    """Value of a model file's header which needs to be one of these."""
    if value not in choices:
        raise UnreadableModel(f"its header says {value!r} where one of {', '.join(choices)} is needed")
    return value
