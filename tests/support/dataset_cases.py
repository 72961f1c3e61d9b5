"""Samples against their distributions: how far moments may be off."""

import numpy as np


def within(found, expected, error, times=5):
    """Every entry of `found` lies within some standard errors of `expected`."""
    assert (np.abs(np.asarray(found) - expected) <= times * np.asarray(error)).all(), (found, expected, error)


def within_moments(Z, mean, covariance):
    """Rows of Z have this mean and covariance, up to errors that follow from the covariance (normal rows)."""
    m = Z.shape[0]
    deviation = np.diag(covariance)
    within(Z.mean(axis=0), mean, np.sqrt(deviation / m))
    within(np.cov(Z.T), covariance, np.sqrt((np.outer(deviation, deviation) + covariance**2) / m))
