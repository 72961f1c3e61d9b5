"""A coroutine driven to its end, for tests of the generators that features and clusters are made by."""


def drain(generator):
    """All that a coroutine yields, and what it returns."""
    yielded = []
    while True:
        try:
            yielded.append(next(generator))
        except StopIteration as end:
            return yielded, end.value
