"""Parameters that weigh the margin distribution, as the LDM of Zhang and Zhou does."""

from mdlearn.extend import Parameter


def default_lambda1(params, total):
    """Return C m / 256, as for `ldm`: the variance acts only where its weight is comparable with C m."""
    return params["C"] * total / 256.0


DISTRIBUTION = {
    "lambda1": Parameter(default_lambda1, "weight of twice the margin variance (default C m / 256)"),
    "lambda2": Parameter(lambda params, m: params["lambda1"] / 4.0, "weight of the margin mean (default lambda1 / 4)"),
}
"""Declared parameters of 2 lambda1 Var(z) - lambda2 mean(z)."""


def check_free_bias(params, column, bias):
    """Raise ValueError where the mean of the margins draws a free bias to infinity."""
    if bias == "free" and column.unbounded_in_bias:
        raise ValueError(
            f"with bias='free' and lambda1=0 the objective is unbounded below: lambda2={params['lambda2']:g} exceeds "
            f"what C={params['C']:g} allows; lower lambda2, raise C or lambda1, or use bias='regularized'"
        )
