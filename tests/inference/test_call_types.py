"""The types of calls of built-in functions are found once for each kind of arguments."""

from __future__ import annotations

from typing import Any

import pytest
from numba.core import types
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.typing.templates import AbstractTemplate, Signature

from inference.kernels.call_types import find_each_once

find_each_once()


def of_numbers(kinds: tuple[Any, ...], asked: list[Any], result: Any) -> Any:
    """A function of Numba's that takes numbers of the given kinds, and notes what it is asked."""

    class Template(AbstractTemplate):
        key = "of numbers"

        def generic(self, args: Any, kws: Any) -> Any:  # noqa: ARG002 - as Numba calls it
            asked.append(args)
            found: Any = Signature
            return found(result, args, None) if args[0] in kinds else None

    return types.Function(Template)


def test_each_kind_of_arguments_is_looked_for_once_and_answered_by_its_own() -> None:
    asked: list[Any] = []
    function = of_numbers((types.int64, types.float64), asked, types.float64)
    for kind in (types.int64, types.float64, types.int64, types.float64):
        found = function.get_call_type(cpu_target.typing_context, (kind,), {})
        assert found.args == (kind,)
        assert function.get_impl_key(found) is not None
    assert asked == [(types.int64,), (types.float64,)]


def test_what_is_added_to_a_function_later_is_found() -> None:
    asked: list[Any] = []
    function = of_numbers((types.int64,), asked, types.int64)
    context = cpu_target.typing_context
    assert function.get_call_type(context, (types.int64,), {}).return_type == types.int64
    for _ in range(2):
        with pytest.raises(TypingError):
            function.get_call_type(context, (types.float64,), {})
    more = function.augment(of_numbers((types.float64,), asked, types.float64))
    assert more.get_call_type(context, (types.float64,), {}).return_type == types.float64
    assert more.get_call_type(context, (types.int64,), {}).return_type == types.int64
