"""Calls of operators and built-in functions, whose types are found once for each kind of arguments.

Left to itself Numba looks for the types of a call wherever one stands in a kernel, and once more
where it becomes machine code: it tries the ways in which the function can be called one after
another, each with and without what is known of constants. Of some 7,000 such calls in the kernels
of `lbp` 300 differ, and to find them all took more than a quarter of the time that compiling took.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any

from numba.core.types.functions import BaseFunction


@cache
def find_each_once() -> None:
    """Have Numba keep, from now on, the types of each call that it finds.

    What it finds depends on the arguments' types and on the templates alone, which are the key: a
    function to which others are added later has more templates.
    """
    find: Callable[..., Any] = BaseFunction.get_call_type
    found: dict[Hashable, tuple[Any, Any]] = {}

    def get_call_type(
        function: Any, context: Any, types: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Any:
        key = (context, function.templates, tuple(types), tuple(keywords.items()))
        if key not in found:
            signature = find(function, context, types, keywords)
            found[key] = signature, function.get_impl_key(signature)
        signature, implementation = found[key]
        function._impl_keys[signature.args] = implementation
        return signature

    BaseFunction.get_call_type = get_call_type  # type: ignore[method-assign,assignment]
