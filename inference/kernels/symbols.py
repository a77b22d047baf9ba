"""Kernels that call one another by symbol, so that each is compiled once.

By default Numba links the optimized code of a callee into the kernel and optimizes it there again,
and the whole in every caller of that kernel: the deepest functions are optimized dozens of times,
which was most of the time of compiling. Here a kernel's module only declares its callees, under a
name of ours, and LLVM looks up the address when it prepares the module. So the code of a callee
has to be there before, with its name: it is when a caller has just been compiled, and when one is
read from disk, its callees are read first, or compiled anew where they are not on disk.

Numba's own names cannot serve: they contain a counter of the process, which the code on disk
outlives.

All of this are private parts of Numba. Where a release has renamed one, kernels are linked as Numba
links them, which is as right and takes longer to compile.
"""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from copy import copy
from importlib import import_module
from typing import Any, NamedTuple

from llvmlite.binding import add_symbol, parse_assembly  # type: ignore[import-untyped]

_PREFIX = "kernel:"


class _Callee(NamedTuple):
    """Callee of code on disk by symbol: its location, and the types of its arguments."""

    symbol: str
    module: str
    name: str
    arguments: tuple[Any, ...]


def link_by_symbol(dispatcher: Any, *, called: bool) -> None:
    """Make a kernel that is kept on disk load the kernels that it calls by symbol first.

    Args:
        called: whether kernels that call `dispatcher` do so by symbol.
    """
    # Nothing is done before all of it is found.
    with suppress(AttributeError):
        _keep_with_callees(dispatcher)
        if called:
            _call_by_symbol(dispatcher)


def _call_by_symbol(dispatcher: Any) -> None:
    add_overload = dispatcher.add_overload
    kept = dispatcher._cache._impl
    reduce = kept.reduce
    declared: set[tuple[Any, ...]] = set()

    def is_found() -> bool:
        # What is in no module by its name could not be found again for a caller read from disk.
        function = dispatcher.py_func
        module = sys.modules.get(function.__module__)
        attributes = vars(getattr(module, function.__name__, None) or object)
        return attributes.get("dispatcher") is dispatcher

    def add(compiled: Any) -> None:
        add_overload(compiled)
        if is_found():
            arguments = compiled.signature.args
            with suppress(AttributeError):
                _declare(compiled, _symbol(dispatcher.py_func, arguments))
                declared.add(arguments)

    def reduce_to_machine_code(compiled: Any) -> Any:
        callees, (library, *others) = reduce(compiled)
        # A caller that is linked needs all of it.
        if compiled.signature.args in declared:
            # Names of what a caller would be linked with suffice; all of it took long to read.
            name, kind, (code, _) = library
            named = (each.name for each in compiled.library.get_defined_functions())
            stubs = "".join(f'define void @"{each}"() {{ ret void }}\n' for each in named)
            library = name, kind, (code, parse_assembly(stubs).as_bitcode())
        return callees, (library, *others)

    vars(dispatcher)["add_overload"] = add
    vars(kept)["reduce"] = reduce_to_machine_code


def _keep_with_callees(dispatcher: Any) -> None:
    kept = dispatcher._cache._impl
    reduce, rebuild = kept.reduce, kept.rebuild

    def reduce_with_callees(compiled: Any) -> Any:
        # Without it nothing is declared, so nothing is called by symbol.
        module = getattr(compiled.library, "_final_module", None)
        functions = module.functions if module is not None else ()
        names = (each.name for each in functions if each.is_declaration)
        callees = [_callee(name) for name in names if name.startswith(_PREFIX)]
        return callees, reduce(compiled)

    def rebuild_after_callees(context: Any, parts: Any) -> Any:
        callees, reduced = parts
        for callee in callees:
            called = getattr(import_module(callee.module), callee.name)
            called.compile_within(callee.arguments)
            _give_address(callee.symbol, called.overloads[callee.arguments])
        return rebuild(context, reduced)

    vars(kept).update(reduce=reduce_with_callees, rebuild=rebuild_after_callees)


def _declare(compiled: Any, symbol: str) -> None:
    """Have callers of what is compiled declare it under a symbol, and not be linked with it.

    Raises:
        AttributeError: and nothing is done, if this Numba has other names for what is needed.
    """
    context = compiled.target_context
    remove, insert = context.remove_user_function, context.insert_user_function
    declared = copy(compiled.fndesc)
    for holder, name in (
        (declared, "mangled_name"),
        (compiled.library, "_final_module"),
        (compiled.library, "get_defined_functions"),
    ):
        getattr(holder, name)
    declared.mangled_name = symbol
    _give_address(symbol, compiled)
    remove(compiled.entry_point)
    insert(compiled.entry_point, declared)


def _symbol(function: Any, arguments: tuple[Any, ...]) -> str:
    types = hashlib.sha256(str(arguments).encode()).hexdigest()[:16]
    return f"{_PREFIX}{function.__module__}:{function.__name__}:{types}"


def _give_address(symbol: str, compiled: Any) -> None:
    # The dispatcher keeps the code alive, and its module the dispatcher.
    add_symbol(symbol, compiled.library.get_pointer_to_function(compiled.fndesc.mangled_name))


def _callee(symbol: str) -> _Callee:
    _, module, name, _ = symbol.split(":")
    dispatcher = getattr(sys.modules[module], name)
    for arguments in dispatcher.overloads:
        if _symbol(dispatcher.py_func, arguments) == symbol:
            return _Callee(symbol, module, name, arguments)
    raise LookupError(symbol)
