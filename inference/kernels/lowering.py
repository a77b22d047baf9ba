"""How kernels become code of LLVM: as Numba does it, with less for LLVM to clear away.

LLVM has to make machine code of what Numba writes down, most of which it takes out again: for an
entry of an array some thirty instructions where five remain, for an argument a place in memory, out
of which all arrays of a named tuple are read wherever one of them is used, and counting of
references to what the caller holds anyway. None of that is written down here. What is left is the
same machine code, or one that counts fewer references.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir as llvm  # type: ignore[import-untyped]
from numba.core import cgutils, ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import AnnotateTypes, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

_MEMORY, _PARENT, _ITEM_SIZE, _DATA, _SHAPE, _STRIDES = 0, 1, 3, 4, 5, 6
"""Places of an array's fields, as Numba lays it out."""


class _Place(NamedTuple):
    """What a variable stands for: an argument, or what lies within one that is a tuple."""

    argument: int
    within: tuple[int, ...]


class KernelLower(Lower):
    """Numba's, but for arguments, their parts, plain numbers, entries of arrays and loops."""

    def init(self) -> None:
        """Find the variables that need no place in memory."""
        super().init()
        self._lent = self._lent_by_caller()
        self._singly_assigned_vars |= self._loop_counters()

    def _assignments(self) -> tuple[Counter[str], list[Any]]:
        """How often each variable is assigned, and the assignments as they stand."""
        blocks = (block for _, block in sorted(self.blocks.items()))
        found = [each for block in blocks for each in block.find_insts(ir.Assign)]
        return Counter(each.target.name for each in found), found

    def _lent_by_caller(self) -> dict[str, _Place]:
        """Variables that stand for an argument, or a part of one, wherever they are used.

        The caller holds what it gives until the kernel returns, so no references are counted.
        """
        lent: dict[str, _Place] = {}
        if self.func_ir.func_id.is_generator:
            return lent
        times, assignments = self._assignments()
        for each in assignments:
            if times[each.target.name] == 1:
                place = self._place(each.value, lent)
                if place is not None and self._type_at(place) == self.typeof(each.target.name):
                    lent[each.target.name] = place
        return lent

    def _place(self, value: Any, lent: dict[str, _Place]) -> _Place | None:
        if isinstance(value, ir.Arg):
            return _Place(value.index, ())
        if isinstance(value, ir.Var):
            return lent.get(value.name)
        if not isinstance(value, ir.Expr) or value.op not in _PARTS:
            return None
        whole = lent.get(value.value.name)
        kind = self.typeof(value.value.name)
        if whole is None or not isinstance(kind, types.BaseTuple):
            return None
        if value.op == "exhaust_iter":
            return whole
        if value.op == "getattr":
            fields = getattr(kind, "fields", ())
            index = fields.index(value.attr) if value.attr in fields else None
        else:
            index = value.index
        if not isinstance(index, int):
            return None
        return _Place(whole.argument, (*whole.within, index % len(kind)))

    def _type_at(self, place: _Place) -> Any:
        kind = self.fndesc.argtypes[place.argument]
        for index in place.within:
            kind = kind[index]
        return kind

    def _loop_counters(self) -> set[str]:
        """What loops over ranges count with: it is set up in one place, before it is looked at."""
        times, assignments = self._assignments()
        return {
            each.target.name
            for each in assignments
            if times[each.target.name] == 1
            and isinstance(self.typeof(each.target.name), types.RangeIteratorType)
        }

    def _is_counted(self, kind: Any) -> bool:
        return _holds_references(self.context.data_model_manager, kind)

    # Variables.

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """Nothing is to be done for what is lent."""
        if inst.target.name in self._lent:
            return None
        return super().lower_assign(ty, inst)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Store a value; what stood there is looked at only where its references are counted."""
        if name in self._lent:
            return
        kind = self.typeof(name)
        if name in self._singly_assigned_vars or self._is_counted(kind):
            super().storevar(value, name, argidx)
        else:
            self._alloca_var(name, kind)
            self.builder.store(value, self.getvar(name))

    def loadvar(self, name: str) -> Any:
        """Value of a variable."""
        if name in self._lent:
            place = self._lent[name]
            return _part(self.builder, self.fnargs[place.argument], place.within)
        return super().loadvar(name)

    def delvar(self, name: str) -> None:
        """Forget a variable, where that means anything."""
        if name not in self._lent and self._is_counted(self.typeof(name)):
            super().delvar(name)

    def _alloca_var(self, name: str, fetype: Any) -> None:
        if name not in self._lent:
            super()._alloca_var(name, fetype)

    def incref(self, typ: Any, val: Any) -> None:
        """Count one more reference to whatever counts them in a value."""
        if self._is_counted(typ):
            super().incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        """Count one fewer."""
        if self._is_counted(typ):
            super().decref(typ, val)

    # Loops over ranges, which count how many steps are left.

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        """Call a function of Numba's, but for ranges in steps of 1, which are three numbers."""
        called = getattr(fnty, "typing_key", None)
        if called is range and len(expr.args) < 3 and not expr.kws and not expr.vararg:
            ends = [
                self.context.cast(self.builder, self.loadvar(each.name), self.typeof(each.name), to)
                for each, to in zip(expr.args, signature.args, strict=True)
            ]
            number = ends[0].type
            return self._struct(signature.return_type, *[number(0), *ends][-2:], number(1))
        return super()._lower_call_normal(fnty, expr, signature)

    def _begin_steps(self, expr: Any, resty: Any) -> Any:
        builder = self.builder
        start, stop, step = (self._part_of(expr.value.name, index) for index in range(3))
        if not isinstance(step, llvm.Constant) or step.constant != 1:
            return super().lower_expr(resty, expr)
        length = builder.sub(stop, start)
        positive = builder.icmp_signed(">", length, length.type(0))
        place = cgutils.alloca_once(builder, start.type)
        left = cgutils.alloca_once(builder, start.type)
        builder.store(start, place)
        builder.store(builder.select(positive, length, length.type(0)), left)
        return self._struct(resty, place, stop, step, left)

    def _take_step(self, expr: Any, resty: Any) -> Any:
        builder = self.builder
        place, _, step, left = (self._part_of(expr.value.name, index) for index in range(4))
        count = builder.load(left)
        number = builder.load(place)
        # What comes after the last is never looked at.
        builder.store(builder.sub(count, count.type(1), flags=["nsw"]), left)
        builder.store(builder.add(number, step), place)
        return self._struct(resty, number, builder.icmp_signed(">", count, count.type(0)))

    def _step_taken(self, expr: Any, resty: Any) -> Any:
        found = self._part_of(expr.value.name, _STEP_PARTS.index(expr.op))
        self.incref(resty, found)
        return found

    def _part_of(self, name: str, *within: int) -> Any:
        return _part(self.builder, self.loadvar(name), within)

    def _struct(self, kind: Any, *parts: Any) -> Any:
        value: Any = llvm.Constant(self.context.get_value_type(kind), llvm.Undefined)
        for index, part in enumerate(parts):
            value = self.builder.insert_value(value, part, index)
        return value

    # Entries of arrays.

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Find entries with written-out indices as others are found."""
        if (
            expr.op == "static_getitem"
            and expr.index_var is not None
            and isinstance(self.typeof(expr.value.name), types.Array)
        ):
            signature = self.fndesc.calltypes[expr]
            if signature is not None:
                return self.lower_getitem(resty, expr, expr.value, expr.index_var, signature)
        if expr.op in _STEPS and isinstance(self.typeof(expr.value.name), _STEPPED):
            return getattr(self, _STEPS[expr.op])(expr, resty)
        return super().lower_expr(resty, expr)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Entry of an array, or what else Numba finds there."""
        kind = self.typeof(value.name)
        if _is_stretch(kind, self.typeof(index.name)) and resty == signature.return_type:
            data, length = self._stretch(value.name, index.name)
            size = self._field(value.name, _ITEM_SIZE)
            held = [self._field(value.name, each) for each in (_MEMORY, _PARENT)]
            lengths = cgutils.pack_array(self.builder, [length])
            strides = self._field(value.name, _STRIDES)
            view = self._struct(resty, *held, length, size, data, lengths, strides)
            self.incref(resty, view)
            return view
        pointer = self._entry(value, index, signature)
        if pointer is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        found = self.context.unpack_value(self.builder, kind.dtype, pointer, _alignment(kind))
        return self.context.cast(self.builder, found, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Write an entry of an array, or what else Numba writes."""
        kind = self.typeof(target_var.name)
        value = self.loadvar(value_var.name)
        given = self.typeof(value_var.name)
        filled = _is_stretch(kind, self.typeof(index_var.name)) and isinstance(given, _PLAIN)
        pointer = None if filled else self._entry(target_var, index_var, signature)
        if pointer is None and not filled:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        for wanted in (signature.args[2], kind.dtype):
            value = self.context.cast(self.builder, value, given, wanted)
            given = wanted
        context, builder = self.context, self.builder
        if filled:
            data, length = self._stretch(target_var.name, index_var.name)
            with cgutils.for_range(builder, length) as loop:
                pointer = self._further(target_var.name, data, loop.index)
                context.pack_value(builder, kind.dtype, value, pointer, _alignment(kind))
        else:
            context.pack_value(builder, kind.dtype, value, pointer, _alignment(kind))
        return context.get_dummy_value()

    def _stretch(self, array: str, bounds: str) -> tuple[Any, Any]:
        """Where a stretch of an array of one axis begins, and its length."""
        builder = self.builder
        size = self._field(array, _SHAPE, 0)
        ends = []
        for index in range(2):
            end = self._from_the_front(array, 0, types.intp, self._part_of(bounds, index))
            end = builder.select(builder.icmp_signed("<", end, size.type(0)), size.type(0), end)
            ends.append(builder.select(builder.icmp_signed(">", end, size), size, end))
        start, stop = ends
        length = builder.sub(stop, start)
        length = builder.select(
            builder.icmp_signed(">", length, size.type(0)), length, size.type(0)
        )
        return self._further(array, self._field(array, _DATA), start), length

    def _further(self, array: str, data: Any, by: Any) -> Any:
        """Pointer to so many entries further on in an array of one axis."""
        if self.typeof(array).layout == "C":
            return self.builder.gep(data, [by])
        offset = self.builder.mul(self._field(array, _STRIDES, 0), by)
        first = self.builder.bitcast(data, llvm.IntType(8).as_pointer())
        return self.builder.bitcast(self.builder.gep(first, [offset]), data.type)

    def _entry(self, array: Any, index: Any, signature: Any) -> Any:
        """Where an entry lies; nothing unless there is one whole number for each axis."""
        kind = self.typeof(array.name)
        given, wanted = self.typeof(index.name), signature.args[1]
        wanted_each: Any = wanted if isinstance(wanted, types.BaseTuple) else (wanted,)
        if (
            not isinstance(kind, types.Array)
            or not isinstance(kind.dtype, _PLAIN)
            or kind.layout not in ("CA" if kind.ndim == 1 else "C")
            or len(wanted_each) != kind.ndim
            or not all(isinstance(each, types.Integer) for each in wanted_each)
            or self.context.enable_boundscheck
        ):
            return None
        number = self.context.cast(self.builder, self.loadvar(index.name), given, wanted)
        numbers = [number]
        if isinstance(wanted, types.BaseTuple):
            numbers = [_part(self.builder, number, (axis,)) for axis in range(kind.ndim)]
        places = [
            self._from_the_front(array.name, axis, each, numbers[axis])
            for axis, each in enumerate(wanted_each)
        ]
        data = self._field(array.name, _DATA)
        if kind.ndim == 1:
            return self._further(array.name, data, places[0])
        place = places[0]
        for axis in range(1, kind.ndim):
            place = self.builder.mul(place, self._field(array.name, _SHAPE, axis))
            place = self.builder.add(place, places[axis])
        return self.builder.gep(data, [place])

    def _from_the_front(self, array: str, axis: int, kind: Any, number: Any) -> Any:
        """Index from the front, of one that counts from the end where it is negative."""
        number = self.context.cast(
            self.builder, number, kind, types.intp if kind.signed else types.uintp
        )
        if not kind.signed or (isinstance(number, llvm.Constant) and number.constant >= 0):
            return number
        negative = self.builder.icmp_signed("<", number, number.type(0))
        wrapped = self.builder.add(number, self._field(array, _SHAPE, axis))
        return self.builder.select(negative, wrapped, number)

    def _field(self, name: str, *within: int) -> Any:
        """Field of an array; only that is read where the array has a place in memory."""
        if name in self._lent:
            place = self._lent[name]
            return _part(self.builder, self.fnargs[place.argument], (*place.within, *within))
        if name in self._blk_local_varmap:
            return _part(self.builder, self._blk_local_varmap[name], within)
        indices = [llvm.IntType(32)(each) for each in (0, *within)]
        return self.builder.load(self.builder.gep(self.getvar(name), indices, inbounds=True))


_PARTS = ("getattr", "static_getitem", "exhaust_iter")

_STEP_PARTS = ("pair_first", "pair_second")
_STEPS = {"getiter": "_begin_steps", "iternext": "_take_step"} | dict.fromkeys(
    _STEP_PARTS, "_step_taken"
)
_STEPPED = (types.RangeType, types.RangeIteratorType, types.Pair)
_PLAIN = (types.Number, types.Boolean)


def _alignment(array: Any) -> int | None:
    return None if array.aligned else 1


def _is_stretch(array: Any, index: Any) -> bool:
    """Whether an index is a slice without steps, of an array of one axis and plain numbers."""
    return (
        isinstance(array, types.Array)
        and array.ndim == 1
        and array.layout in "CA"
        and isinstance(array.dtype, _PLAIN)
        and index == types.slice2_type
    )


def _part(builder: Any, whole: Any, within: Sequence[int]) -> Any:
    """What lies within a value, as it was put in there where that can be seen."""
    within = tuple(within)
    while within and isinstance(whole, llvm.instructions.InsertValue):
        indices = tuple(whole.indices)
        common = min(len(indices), len(within))
        if indices[:common] != within[:common]:
            whole = whole.aggregate
        elif len(indices) <= len(within):
            whole, within = whole.value, within[len(indices) :]
        else:
            break
    return builder.extract_value(whole, list(within)) if within else whole


@cache
def _holds_references(manager: Any, kind: Any) -> bool:
    held: bool = manager[kind].contains_nrt_meminfo()
    return held


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):
    """Numba's pass, with `KernelLower`."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What writes code of LLVM."""
        return KernelLower


_LEFT_OUT = (InlineClosureLikes, NopythonRewrites, AnnotateTypes)
"""Passes for functions within functions, for expressions of whole arrays, which are computed one
operation at a time without, and for a text with types that people may look at."""


class KernelCompiler(CompilerBase):
    """Numba's passes, but for those that kernels have no use for."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes, as Numba asks for them."""
        numbas = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes = PassManager("kernel")
        passes.passes = [
            (KernelLowering if each is NativeLowering else each, told)
            for each, told in numbas.passes
            if each not in _LEFT_OUT
        ]
        passes.finalize()
        return [passes]
