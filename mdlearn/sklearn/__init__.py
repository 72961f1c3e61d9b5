"""scikit-learn estimators: every fit is certified, and sample weights mean repetition.

``import sklearn`` inside this package is scikit-learn itself.
"""

from __future__ import annotations

try:
    import sklearn
except ImportError as error:
    raise ImportError("mdlearn.sklearn needs scikit-learn >= 1.6; pip install 'mdlearn[sklearn]'") from error

if tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 6):
    raise ImportError(
        f"mdlearn.sklearn needs scikit-learn >= 1.6, here is {sklearn.__version__}; pip install 'mdlearn[sklearn]'"
    )

from mdlearn.sklearn.any_objective import MarginClassifier, MarginEstimator, MarginRegressor
from mdlearn.sklearn.base import EstimatorConvergenceWarning
from mdlearn.sklearn.kernel_classifiers import (
    L3SVMClassifier,
    LDMClassifier,
    LSLDMClassifier,
    LSSVMClassifier,
    LSVMClassifier,
    ODMClassifier,
    SVMClassifier,
    ULDMClassifier,
)
from mdlearn.sklearn.landmarks import LandmarkTransformer
from mdlearn.sklearn.linear_classifiers import L2LRClassifier, MDLMClassifier, MLRClassifier, MMLRClassifier

__all__ = [
    "EstimatorConvergenceWarning",
    "L2LRClassifier",
    "L3SVMClassifier",
    "LDMClassifier",
    "LSLDMClassifier",
    "LSSVMClassifier",
    "LSVMClassifier",
    "LandmarkTransformer",
    "MDLMClassifier",
    "MLRClassifier",
    "MMLRClassifier",
    "MarginClassifier",
    "MarginEstimator",
    "MarginRegressor",
    "ODMClassifier",
    "SVMClassifier",
    "ULDMClassifier",
]
