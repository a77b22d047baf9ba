"""Kernels: functions of arrays that run as machine code or, for small inputs, as Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from threading import Lock, local
from typing import Any, Literal

import numpy as np

from inference.kernels.compiler_lock import is_compiling
from inference.kernels.preparation import PREPARATION
from inference.thread_team import call_in_thread


class _Mode(local):
    """Mode in which kernels run in this thread.

    Attributes:
        interprets: whether kernels run as Python.
        within: whether an interpreted kernel is running, which calls others as Python too.
    """

    interprets = False
    within = False


_MODE = _Mode()

_BLOCKS: list[None] = []
"""An item per open block of `interpreted`, in any thread: looking whether there are any takes a
tenth of the time of looking up a thread's mode, which counts in graphs of microseconds."""

_MAKING = Lock()


@contextmanager
def interpreted() -> Iterator[None]:
    """Run the kernels that this thread calls in the block as Python, and load no compiler.

    The answers equal those of the machine code to the last bit, except for kernels that may
    contract or reassociate. A step takes some hundred times as long. Use it for graphs so small
    that loading the compiler would take longer than the whole computation.
    """
    before, _MODE.interprets = _MODE.interprets, True
    _BLOCKS.append(None)
    try:
        yield
    finally:
        _BLOCKS.pop()
        _MODE.interprets = before


class Kernel:
    """A function that Numba compiles for the types of its arguments when it is first called.

    Numba, which takes a third of a second to load, is loaded then; attributes of Numba's
    dispatcher are those of this object.

    Attributes:
        py_func: the function as it is written.
        dispatcher: Numba's dispatcher, made on first use.
    """

    dispatcher: Any

    def __init__(
        self,
        function: Callable[..., Any],
        fastmath: bool | set[str] = False,
        inline: Literal["never", "always"] = "never",
        inner: bool = False,
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._options = (fastmath, inline, inner or function.__name__.startswith("_"))

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code or, in a block of `interpreted`, the function as it is written."""
        if _BLOCKS and _MODE.interprets:
            return self._interpret(arguments)
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        """Attribute of Numba's dispatcher, which is made on first use."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name != "dispatcher":
            return getattr(self.dispatcher, name)
        # Loading Numba is no more an algorithm's time than compiling is.
        with PREPARATION.counted(), _MAKING:
            if "dispatcher" not in vars(self):
                self.dispatcher = _compiler()(self.py_func, *self._options)
        return self.dispatcher

    def __reduce__(self) -> str:
        """Pickle it as a function is: by its name."""
        return self.py_func.__qualname__

    @property
    def has_machine_code(self) -> bool:
        """True if this process has compiled the kernel, or read it from disk."""
        return "dispatcher" in vars(self) and bool(self.dispatcher.overloads)

    def _interpret(self, arguments: tuple[Any, ...]) -> Any:
        if _MODE.within:
            return self.py_func(*arguments)
        _MODE.within = True
        try:
            # Machine code neither warns of numbers out of range nor of a division by zero.
            with np.errstate(all="ignore"):
                return _as_python(self.py_func(*arguments))
        finally:
            _MODE.within = False


def machine_code_is_loaded() -> bool:
    """Return whether this process has loaded Numba, as the first kernel run as machine code does.

    From then on another kernel's machine code takes a fifth of the time to load.
    """
    return _compiler.cache_info().currsize > 0


@cache
def _compiler() -> Callable[..., Any]:
    """Load Numba in another thread, where no interrupt of this one reaches it.

    A module or table that an interrupt left half loaded would fail every later kernel.
    """
    return _load_compiler() if is_compiling() else call_in_thread(_load_compiler)


def _load_compiler() -> Callable[..., Any]:
    from inference.kernels.compiling import dispatcher_of
    from inference.kernels.storage import runtime_is_started

    runtime_is_started()
    return dispatcher_of


def _as_python(result: Any) -> Any:
    """Convert a kernel's result as compiled code does: Python numbers, alone and in tuples."""
    if isinstance(result, np.generic):
        return result.item()
    if isinstance(result, tuple):
        parts = map(_as_python, result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call, and keep the machine code on disk.

    Kernels release the interpreter lock and follow NumPy's rules for division. Numba caches code by
    the file of the function alone, although the code includes all called functions. Here a change
    to any file that the function's file imports, directly or indirectly, makes the code stale, so
    that no old callee survives in a caller. Kernels call long kernels by address and are linked
    with short ones: `inference.kernels.symbols`. A kernel whose name begins with an underscore is
    an `inner_kernel`. A long compilation is announced by a warning of this module's logger, once
    per process; each finished compilation is logged at level INFO, with `seconds` in its record. An
    interrupt during a kernel is raised when the kernel returns, and one during a callback of its
    compilation when the compilation is done. To lose no interrupt, kernels called from Python
    return no named tuple within another tuple, whose class would run Python code.
    """
    return Kernel(function)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call, and not Python.

    The conversion of Python objects to arguments would take a tenth of its compilation.
    """
    return Kernel(function, inner=True)


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel` does, and write the function out wherever another kernel calls it.

    Use it for steps of an inner loop, in which a call takes longer than the step. The function is
    compiled wherever it is called; a function that is called rarely should be a `kernel`, which is
    compiled once.
    """
    return Kernel(function, inline="always")


def reassociating_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel` does, with sums in the order that suits vector instructions.

    Like kernels of `contracting_kernel`, it is compiled separately for each number that is written
    in a call, such as the stride 1.
    """
    return Kernel(function, fastmath={"reassoc", "nsz", "contract"})


def contracting_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel` does, with a product and a sum in one instruction where there is one."""
    return Kernel(function, fastmath={"contract"})
