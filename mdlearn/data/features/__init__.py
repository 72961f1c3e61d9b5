"""The space that a problem is linear in: the rows, a Gram matrix, kernel columns, landmark features, maps of plugins.

May import data.rows, data.clustering and data.validation. Stages of a fit make features; forms and engines use them.
"""

from mdlearn.lazy import names_of_moved_module

__getattr__ = names_of_moved_module(__name__, "mdlearn.data.features.kernel_features")
