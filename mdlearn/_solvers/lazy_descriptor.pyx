"""Descriptor of lazy properties: a small fit makes a dozen such values, each of which would take a call of Python more."""


cdef class LazyDescriptor:
    """Descriptor whose value `make` computes when it is first asked for; the object's own dictionary keeps it."""

    cdef public object make, name

    def __init__(self, make):
        self.make = make

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner):
        if instance is None:
            return self
        # No __set__: from now on the object's own dictionary answers.
        value = self.make(instance)
        instance.__dict__[self.name] = value
        return value
