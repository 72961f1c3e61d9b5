"""Frozen dataclasses with the quick `__init__`: made like others, and as immutable."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import numpy as np
import pytest

import mdlearn
from mdlearn.numerics.frozen_init import quick_init


def declared(name):
    """A class with every kind of field, as `dataclass` alone makes it."""

    class Rod:
        length: float
        width: float = 2.0
        tags: list = field(default_factory=list)
        area: float = field(init=False)
        note: str = "none"

        def __post_init__(self):
            vars(self)["area"] = self.length * self.width

    Rod.__qualname__ = Rod.__name__ = name
    return dataclass(frozen=True)(Rod)


Plain, Quick = declared("Plain"), quick_init(declared("Quick"))


@dataclass(frozen=True)
class Longer(Quick):
    """Derived class with one field more, by `dataclass` alone."""

    colour: str = "grey"


@pytest.mark.parametrize("given", [((1.0,), {}), ((1.0, 3.0, [4], "x"), {}), ((), {"note": "y", "length": 5.0})])
def test_an_object_has_the_fields_that_a_plain_one_has(given):
    plain, quick = (cls(*given[0], **given[1]) for cls in (Plain, Quick))
    assert vars(quick) == vars(plain)
    assert list(vars(quick)) == list(vars(plain))


def test_each_object_has_a_list_of_its_own():
    assert Quick(1.0).tags is not Quick(1.0).tags
    given = []
    assert Quick(1.0, tags=given).tags is given


def test_the_signature_is_that_of_a_plain_class():
    assert str(inspect.signature(Quick)) == str(inspect.signature(Plain))
    assert Quick.__init__.__qualname__ == "Quick.__init__"


@pytest.mark.parametrize(("given", "named"), [((), {}), ((1.0,), {"strange": 1}), ((1.0,), {"length": 1.0})])
def test_wrong_arguments_are_told_as_for_a_plain_class(given, named):
    told = []
    for cls in (Plain, Quick):
        with pytest.raises(TypeError) as caught:
            cls(*given, **named)
        told.append(str(caught.value).replace(cls.__name__, ""))
    assert told[0] == told[1]


def test_fields_cannot_be_set_or_deleted():
    one = Quick(1.0)
    with pytest.raises(FrozenInstanceError, match="length"):
        one.length = 2.0
    with pytest.raises(FrozenInstanceError, match="length"):
        del one.length
    assert one.length == 1.0


def test_replace_and_derived_classes():
    assert replace(Quick(2.0), width=5.0).area == 10.0
    longer = Longer(2.0, colour="red")
    assert (longer.area, longer.colour, longer.tags) == (4.0, "red", [])


def test_a_model_and_its_certificate_are_made_by_it_and_survive_a_pickle():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    model = mdlearn.fit("svm", X, np.sign(X[:, 0]))
    for one, name in ((model, "params"), (model.certificate, "tol")):
        assert "update" in type(one).__init__.__code__.co_names
        with pytest.raises(FrozenInstanceError, match=name):
            setattr(one, name, 1.0)
    again = pickle.loads(pickle.dumps(model))
    assert again.certificate == model.certificate
    assert (again.coef_ == model.coef_).all()
