"""Kernels of plugins for tests: their code, and rows."""

from __future__ import annotations

from textwrap import dedent

import numpy as np

LAPLACE = """
    import numpy as np

    import mdlearn
    from mdlearn.objectives.base import Parameter


    class Laplace(mdlearn.KernelFunction):
        name = "laplace"
        summary = "exp(-|a - b|_1 / width)"
        parameters = {"width": Parameter(1.0, "length over which it falls", strict=True)}

        def values(self, params, A, B):
            return np.exp(-np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2) / params["width"])


    @mdlearn.hookimpl
    def mdlearn_kernels():
        return [Laplace]
"""


def bringing(body="", name="odd", before="", cls="Odd(mdlearn.KernelFunction)"):
    """A plugin with one kernel, the dot product unless `body` says something else."""
    return "\n".join(
        [
            "import numpy as np, mdlearn",
            "from mdlearn.objectives.base import Parameter, Setting",
            *dedent(before).splitlines(),
            f"class {cls}:",
            f"    name = {name!r}",
            "    def values(self, params, A, B):",
            "        return A @ B.T",
            *("    " + line for line in dedent(body).splitlines()),
            "@mdlearn.hookimpl",
            "def mdlearn_kernels():",
            f"    return [{cls.split('(')[0]}]",
        ]
    )


def sample(m=40, d=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(m) > 0, "yes", "no")
