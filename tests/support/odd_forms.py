"""A plugin whose objectives and forms can be faulty in one way: its code, and what installs it."""

from __future__ import annotations

from textwrap import dedent, indent

import numpy as np
from plugin_cases import Site

PLUGIN = """
    from dataclasses import dataclass, replace

    import numpy as np

    import mdlearn
    from mdlearn.extend import (
        Column, ColumnProblem, Composite, CompositeEvaluation, FeatureMap, HingeTerm, LinearFeatures, MappedFeatures,
        MarginForm, Parameter, Several, Terms,
    )


    class Odd(mdlearn.Objective):
        name = "odd"
        summary, formula = "faulty in one way", "f"
        parameters = {"C": Parameter(1.0, "weight")}
        multiclass = ("ovr", "ovo", "joint", "fuzzy-min")

        def terms(self, params, total):
            return Terms(loss=(HingeTerm(params["C"]),))

        def plain(self, *given):
            return mdlearn.Objective.form(self, *given)

    {odd}


    def changed(form, **given):
        one = {name: getattr(form.columns[0], name) for name in ("y", "counts", "variance", "mean", "terms")}
        return replace(form, columns=(Column(**(one | given)), *form.columns[1:]))


    class Squares(Composite):
        convex = nonnegative = True

        def __init__(self, data, features):
            k, d = data.classes.shape[0], features.width
            self.targets = np.eye(k)[data.codes] if k > 2 else 2.0 * data.codes[:, None] - 1.0
            super().__init__(features, "none", self.targets.shape[1], np.ones(d), np.zeros(d))
            self.X, self.at_zero = features.matrix(), 0.5 * float((self.targets**2).sum())
            self.finish()

        def finish(self):
            pass

        def at(self, W):
            return self.evaluated(W)

        def evaluated(self, W):
            rest = self.X @ W - self.targets
            sizes = np.abs(self.X).T @ np.abs(rest).sum(axis=1)
            return CompositeEvaluation(W, 0.5 * float((rest**2).sum()), self.X.T @ rest, sizes)

        def lipschitz(self):
            return float(np.linalg.norm(self.X, 2) ** 2 + 1.0)

    {squares}


    class Net(mdlearn.Objective):
        name = "net"
        summary, formula = "least squares with a ridge", "f"
        default_bias, multiclass, kernels = "none", ("joint",), False

        def form(self, data, features, bias, params):
            return Squares(data, features)


    class Part(ColumnProblem):
        pass

    {part}


    @dataclass(frozen=True, eq=False)
    class Parts(MarginForm, Several):
        def problems(self):
            return tuple(Part(self, column) for column in self.columns)

    {parts}


    class Whole(Odd):
        name = "whole"

        def form(self, *given):
            form = self.plain(*given)
            return Parts(form.features, form.columns, form.bias)


    @mdlearn.hookimpl
    def mdlearn_objectives():
        return [Odd, Net, Whole]
"""
X = np.random.default_rng(0).standard_normal((40, 3))
Y = {2: (X[:, 0] > 0).astype(int) ^ (np.arange(40) % 7 == 0), 3: np.argmax(X, axis=1)}
PLACE = "of odd-forms 2.1"


def adding(folder, monkeypatch):
    """Function that installs the plugin, with other methods for some of its classes."""
    site = Site(folder, monkeypatch)

    def add(**bodies):
        code = dedent(PLUGIN)
        for name in ("odd", "squares", "part", "parts"):
            code = code.replace(f"{{{name}}}", indent(dedent(bodies.get(name, "")), "    "))
        site.add("odd-forms", code, version="2.1")

    return add


def method(name, arguments, answer):
    """Code of a method that returns an expression."""
    return f"def {name}(self, {arguments}):\n    return {answer}"
