"""Faulty engines for tests: the code of their plugin, what they hand in, and what is told of it."""

from __future__ import annotations

ENGINE = """
    import numpy as np

    import mdlearn
    from mdlearn.forms.composite import CompositePoint
    from mdlearn.forms.margin import Point
    from mdlearn.solvers.base import Report
    from mdlearn.solvers.interior_point.solver import Interior


    class Odd(Interior):
        name = "odd"
        purpose = "faulty in one way"
        default_max_iter = 30

    {body}

    @mdlearn.hookimpl
    def mdlearn_solvers():
        return [Odd]
"""


def iterate(yielded, before="pass"):
    """An engine that hands in what an expression says, once per class; m rows and d columns."""
    return f"""
        def iterate(self, form, column, shared, options, rng):
            m, d = form.features.n_rows, form.features.width
            beta, sigma, w = np.zeros((1, m)), np.zeros(m), np.zeros(d)
            {before}
            yield None
            yield {yielded}
    """


NONSENSE = {
    "a number": ("3", TypeError, "it yielded int, a Report or None is needed"),
    "False": ("False", TypeError, "it yielded bool, a Report or None is needed"),
    "a point": ("Point(beta, sigma)", TypeError, "it yielded Point, a Report or None is needed"),
    "no number": (
        "Report(None, 0.0, Point(beta, sigma))",
        ValueError,
        "its report has as objective None, a number is needed",
    ),
    "nan": (
        "Report(1.0, float('nan'), Point(beta, sigma))",
        ValueError,
        "its report has as lower_bound nan, a number is needed",
    ),
    "no point": ("Report(1.0, 0.0, None)", ValueError, "it yielded NoneType as a point, a Point is needed"),
    "beta": (
        "Report(1.0, 0.0, Point(beta[0], sigma))",
        ValueError,
        "its point has as beta an array of float64 and shape (40,), floats of shape (1, 40) are needed",
    ),
    "a list": (
        "Report(1.0, 0.0, Point(beta.tolist(), sigma))",
        ValueError,
        "its point has as beta list, floats of shape (1, 40) are needed",
    ),
    "sigma": (
        "Report(1.0, 0.0, Point(beta, sigma[:-1]))",
        ValueError,
        "its point has as sigma an array of float64 and shape (39,), floats of shape (40,) are needed",
    ),
    "no sigma": (
        "Report(1.0, 0.0, Point(beta, None))",
        ValueError,
        "its point has as sigma NoneType, floats of shape (40,) are needed",
    ),
    "coef": (
        "Report(1.0, 0.0, Point(beta, sigma, np.zeros(d + 1)))",
        ValueError,
        "its point has as coef an array of float64 and shape (4,), floats of shape (3,) are needed",
    ),
    "alpha": (
        "Report(1.0, 0.0, Point(beta, sigma, w, 0.0, w))",
        ValueError,
        "its point has as alpha an array of float64 and shape (3,), floats of shape (40,) are needed",
    ),
    "complex": (
        "Report(1.0, 0.0, Point(beta, sigma, w + 1j))",
        ValueError,
        "its point has as coef an array of complex128 and shape (3,), floats of shape (3,) are needed",
    ),
    "nan in beta": (
        "Report(1.0, 0.0, Point(beta + float('nan'), sigma))",
        ValueError,
        "its point has NaN or infinity in beta",
    ),
    "inf in coef": (
        "Report(1.0, 0.0, Point(beta, sigma, w + float('inf')))",
        ValueError,
        "its point has NaN or infinity in coef",
    ),
    "nan as intercept": (
        "Report(1.0, 0.0, Point(beta, sigma, w, float('nan')))",
        ValueError,
        "its point has NaN or infinity in intercept",
    ),
    "a text as intercept": (
        "Report(1.0, 0.0, Point(beta, sigma, w, 'b'))",
        ValueError,
        "its point has as intercept str, a number is needed",
    ),
}
