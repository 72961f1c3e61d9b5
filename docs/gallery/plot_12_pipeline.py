"""
In a scikit-learn pipeline
==========================

The estimators of ``mdlearn.sklearn`` go wherever scikit-learn's do: pipelines, searches, calibration. The certificate
comes along.
"""

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from mdlearn.plotting import cumulative_margins
from mdlearn.sklearn import LDMClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# Scaling belongs into the pipeline, so that it sees training rows only.

pipeline = make_pipeline(MinMaxScaler(), LDMClassifier(kernel="rbf", tol=1e-6))
grid = {"ldmclassifier__C": [1, 10, 100], "ldmclassifier__gamma": [0.1, 0.3, 1.0]}
search = GridSearchCV(pipeline, grid, cv=5).fit(X_train, y_train)
print(search.best_params_)
print(f"folds {search.best_score_:.3f}, rows kept aside {search.score(X_test, y_test):.3f}")
classifier = search.best_estimator_[-1]
print(classifier.certificate_)

# %%
# The fitted estimator holds the model itself, with all that it can tell: here its margins on the rows kept aside.

X_scaled = search.best_estimator_[:-1].transform(X_test)
cumulative_margins(classifier.model_, X_scaled, y_test)

# %%
# The hinge loss makes no probabilities, so the estimator has none to offer; scikit-learn can calibrate its scores.

print("predict_proba:", hasattr(search.best_estimator_, "predict_proba"))
calibrated = CalibratedClassifierCV(search.best_estimator_, cv=5).fit(X_train, y_train)
print(f"Brier score {brier_score_loss(y_test, calibrated.predict_proba(X_test)[:, 1]):.3f}")
