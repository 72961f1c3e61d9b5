from collections.abc import Callable
from typing import Any

class LazyDescriptor:
    make: Callable[[Any], Any]
    name: str
    def __init__(self, make: Callable[[Any], Any]) -> None: ...
    def __set_name__(self, owner: type, name: str) -> None: ...
