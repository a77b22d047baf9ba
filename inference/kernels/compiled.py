"""How kernels are compiled and how their machine code is kept between runs."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import logging
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import repeat
from pathlib import Path
from threading import Timer, current_thread, main_thread
from types import SimpleNamespace
from typing import Any, Literal

from numba import njit, version_info
from numba.core import serialize
from numba.core.codegen import JITCPUCodegen
from numba.core.compiler import Compiler, CompilerBase
from numba.core.runtime.nrt import rtsys
from numba.core.types import unliteral

from inference.kernels.call_types import find_each_once
from inference.kernels.omissions import leave_out
from inference.kernels.preparation import PREPARATION
from inference.kernels.symbols import call_by_symbol, keep_with_callees

logger = logging.getLogger(__name__)

_IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)

_MEASURED = "10 to 60 seconds"
"""What `exact` takes to compile what a small graph needs, and `auto` what one of 120 variables does
that it cannot answer exactly."""

PATIENCE = 2.0
"""Seconds after which a compilation is announced; reading machine code from disk never is."""

_TRIED = ((0, 63), (0, 68))
"""The first and the last version of Numba whose private parts `inference.kernels.lowering` was
tried with: any other compiles by itself, which takes a third longer and is as right."""

_SHORT = 400
"""Bytes of Python's code up to which a kernel is linked into what calls it, as suits inner loops; a
longer one is called by symbol. No backend or task was slower than with all of them linked."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call, and keep the machine code on disk.

    Kernels release the interpreter lock and follow NumPy's rules for division. Numba keeps code
    by the file of the function alone, though it holds whatever that function calls; here a change
    to any file that the function's file imports, and on from there, makes it stale, so that no old
    callee survives in a caller.
    Kernels call a long one by its address and are linked with a short one:
    `inference.kernels.symbols`. One whose name begins with an underscore is an `inner_kernel`.
    A compilation that takes long is announced by a warning of this module's logger, once a process;
    each that is done is told at level INFO, with `seconds` in its record.
    An interrupt that comes while a kernel runs is raised when it returns, and one that comes amid a
    callback of its compilation when that is done. So that none is lost,
    what Python calls returns no named tuple within another tuple: its class would run Python code.
    """
    return _compiled(function, fastmath=False)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel` does what kernels alone call, and Python does not.

    What turns Python's objects into arguments took a tenth of its compilation.
    """
    return _compiled(function, fastmath=False, inner=True)


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel` does, and write the function out wherever another kernel calls it.

    For steps of an inner loop, where a call takes longer than what it does. It is compiled wherever
    it is called; what is called once in a while is a `kernel`, which is compiled once.
    """
    return _compiled(function, fastmath=False, inline="always")


def reassociating_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel` does, with sums in the order that suits vector instructions.

    These and those of `contracting_kernel` know numbers that are written out in a call, such as the
    stride 1: for each they are compiled anew.
    """
    return _compiled(function, fastmath={"reassoc", "nsz", "contract"})


def contracting_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel` does, with a product and a sum in one instruction where there is one."""
    return _compiled(function, fastmath={"contract"})


def _compiled(
    function: Callable[..., Any],
    fastmath: bool | set[str],
    inline: Literal["never", "always"] = "never",
    inner: bool = False,
) -> Any:
    _unpickle_without_python_code()
    _write_nothing_at_null()
    find_each_once()
    leave_out()
    inner = inner or function.__name__.startswith("_")
    dispatcher = njit(  # type: ignore[call-overload] # an option that numba declares nowhere
        cache=True,
        nogil=True,
        error_model="numpy",
        fastmath=fastmath,
        inline=inline,
        # Nothing calls a kernel by way of C, and Python none of the inner ones.
        no_cfunc_wrapper=True,
        no_cpython_wrapper=inner,
        pipeline_class=_compiler(),
    )(function)
    vars(dispatcher._cache)["load_overload"] = _without_rules(dispatcher._cache)
    if inner:
        vars(dispatcher).update(
            _insert=_not_callable, _compile_for_args=_refused(function.__name__)
        )
    index = dispatcher._cache._cache_file
    vars(index)["_load_index"] = _tolerant(index._load_index)
    vars(index)["_load_data"] = _undamaged(index._load_data)
    vars(index)["save"] = _kept_if_possible(index.save)
    source = Path(function.__code__.co_filename)
    index._source_stamp = (index._source_stamp, _sources_digest(source))
    vars(dispatcher)["compile"] = _interruptible(dispatcher.compile)
    compiler = dispatcher._compiler
    vars(compiler)["compile"] = _announced(function.__name__, compiler.compile)
    keep_with_callees(dispatcher)
    if len(function.__code__.co_code) > _SHORT:
        call_by_symbol(dispatcher)
    if not fastmath:
        vars(dispatcher)["get_call_template"] = _without_literals(dispatcher.get_call_template)
    return dispatcher


def _compiler() -> type[CompilerBase]:
    """What makes machine code of a kernel."""
    if not _TRIED[0] <= version_info.short <= _TRIED[1]:
        return Compiler
    from inference.kernels.lowering import KernelCompiler

    return KernelCompiler


def _not_callable(*overload: Any) -> None:
    """Keep machine code from where a dispatcher looks when Python calls it."""


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise TypeError(
            f"the kernel {name!r} is an inner one: kernels call it, and Python does not"
        )

    return refuse


_plain: Callable[[Any], Any] = unliteral


def _without_literals(get_call_template: Callable[..., Any]) -> Callable[..., Any]:
    """Calls among kernels for which a number that is written out is a number like any other.

    Numba would compile what is called once for 0, once for 1 and once for a variable.
    """

    def get(types: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        plain = {name: _plain(each) for name, each in keywords.items()}
        return get_call_template(tuple(map(_plain, types)), plain)

    return get


@cache
def _unpickle_without_python_code() -> None:
    """Let nothing raise an interrupt while a kernel's result becomes Python objects.

    For each array in it Numba's C code has a class and a data type unpickled, and calls a function
    of Python for that. An interrupt that came while the kernel ran is raised where Python code runs
    next, so there; Numba looks for no exception amid a result, and makes a `SystemError` of it,
    loses it, or ends the process by a null pointer. Here the function is one that runs in C alone.
    Numba looks it up when the first result of the process is made.
    """
    if not hasattr(serialize, "_numba_unpickle"):
        return
    # Called with an address, a pickle and its digest: `loads` of the second, whatever the first.
    call = ctypes.PYFUNCTYPE(ctypes.py_object)(("PyObject_CallOneArg", ctypes.pythonapi))
    loads: defaultdict[int, Any] = defaultdict(repeat(ctypes.py_object(serialize.loads)).__next__)
    call.argtypes = [SimpleNamespace(from_param=loads.__getitem__), ctypes.py_object]  # type: ignore[list-item]
    # Kept, as there: Numba needs what it unpickled to stay alive.
    serialize._numba_unpickle = cache(call)


@cache
def _write_nothing_at_null() -> None:
    """Let a kernel that an interrupt left without its machine code be read again, and not end all.

    LLVM calls Python for the code that was read from disk. Where a handler of signals raises there,
    it gets none, and goes on; Numba then writes to where the kernel would be, which is nowhere.
    """
    set_env: Callable[..., None] = JITCPUCodegen.set_env

    def set_where_there_is_code(codegen: Any, name: str, environment: Any) -> None:
        if not codegen._engine.get_global_value_address(name):
            raise OSError("an interrupt came while machine code was read from disk")
        set_env(codegen, name, environment)

    JITCPUCodegen.set_env = set_where_there_is_code  # type: ignore[method-assign]


def _without_rules(cache: Any) -> Callable[[Any, Any], Any]:
    """Reading of machine code from disk without what Numba needs to compile.

    Before it looks on disk, Numba loads all the rules by which it types and compiles, and with them
    SciPy's linear algebra: a third of the time of a first answer. What is on disk needs none of
    them, and what is not is given to Numba's compiler, which loads them itself.
    """

    def load(signature: Any, context: Any) -> Any:
        rtsys.initialize(context)
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, context)

    return load


def _tolerant(load_index: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """Reading of what is on disk: nothing where it is damaged or names a type that is gone."""

    def load() -> dict[Any, Any]:
        try:
            return load_index()
        # Numba unpickles the types of arguments before it looks whether the code is stale, and
        # unpickling raises whatever damage leads it to.
        except Exception:
            return {}

    return load


def _undamaged(load_data: Callable[[str], Any]) -> Callable[[str], Any]:
    """Reading of machine code, where Numba compiles anew what cannot be read from disk."""

    def load(name: str) -> Any:
        try:
            return load_data(name)
        except Exception as error:
            raise OSError(f"{name} is damaged") from error

    return load


def _kept_if_possible(save: Callable[..., None]) -> Callable[..., None]:
    """Keeping of machine code on disk, without which everything is computed all the same."""

    def keep(*code: Any) -> None:
        try:
            save(*code)
        except OSError as error:
            _cannot_keep(error.strerror or str(error))

    return keep


@cache
def _cannot_keep(reason: str) -> None:
    logger.warning(
        "compiled kernels cannot be kept on disk (%s) and are compiled anew at every start; make "
        "room, or name another folder in NUMBA_CACHE_DIR",
        reason,
    )


def _announced(name: str, compile_: Callable[..., Any]) -> Callable[..., Any]:
    """What a dispatcher compiles with, which it does not call for what it finds on disk."""

    def compile_and_announce(*types: Any) -> Any:
        timer = Timer(PATIENCE, _announce)
        timer.daemon = True
        start = time.perf_counter()
        timer.start()
        try:
            return compile_(*types)
        finally:
            timer.cancel()
            taken = {"seconds": time.perf_counter() - start}
            logger.info("compiled %s", name, extra=taken)

    return compile_and_announce


def _interruptible(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """The method `compile` of a dispatcher, which loads from disk what is there."""

    def compile_or_load(signature: Any) -> Any:
        with _interrupts_raised(), _garbage_kept(), PREPARATION.counted():
            return compile_(signature)

    return compile_or_load


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Collect no garbage in the block.

    A compilation makes millions of objects and drops few of them before its end: looking through
    them time and again took a seventh of it, and what is kept meanwhile 250 MB at most.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _interrupts_raised() -> Iterator[None]:
    """Raise after the block what was raised amid a callback in it, where nobody could catch it.

    LLVM calls Python for each object that it has made, and Python calls finalizers. What a handler
    of signals raises there is printed with a traceback and forgotten, so that an interrupt would
    come to nothing. Signals are handled in the main thread alone.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = sys.unraisablehook
    lost: list[BaseException] = []

    def keep(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_value is None or isinstance(unraisable.exc_value, Exception):
            before(unraisable)
        else:
            lost.append(unraisable.exc_value)

    sys.unraisablehook = keep
    try:
        yield
    finally:
        sys.unraisablehook = before
        if lost:
            raise lost.pop().with_traceback(None)


@cache
def _announce() -> None:
    logger.warning(
        "compiling kernels: once, for they are kept on disk; a backend took %s of processor time "
        "where it was measured",
        _MEASURED,
    )


@cache
def _sources_digest(path: Path) -> str:
    """Digest of a file of kernels and of all such files that it imports, directly or not."""
    known: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in known:
            known.add(file)
            waiting.extend(_imported(file))
    digest = hashlib.sha256()
    for file in sorted(known):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _imported(path: Path) -> list[Path]:
    """Files in folders `kernels` that a file imports; of a package, all that it holds."""
    found: list[Path] = []
    for name in _IMPORT.findall(path.read_text()):
        parts = name.split(".")
        if "kernels" not in parts:
            continue
        for above in path.parents:
            target = above.joinpath(*parts)
            if target.with_suffix(".py").exists() or target.is_dir():
                found += [target.with_suffix(".py")] if not target.is_dir() else target.glob("*.py")
                break
    return found
