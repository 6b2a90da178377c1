"""Lowerings for torch ops that coremltools 9.0 lacks; only what our modules need."""
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.frontend.torch import ops
from coremltools.converters.mil.frontend.torch.torch_op_registry import _TORCH_OPS_REGISTRY as registry
from coremltools.converters.mil.mil import types

get = ops._get_inputs


def lowers(*names):
    def register(function):
        for name in names:
            registry.name_to_func_mapping[name] = function
        return function

    return register


@lowers("alias")
def alias(context, node):
    context.add(mb.identity(x=get(context, node)[0], name=node.name))


@lowers("__and__", "bitwise_and", "and_1")
def bool_and(context, node):
    a, b = (mb.cast(x=x, dtype="bool") for x in get(context, node)[:2])
    context.add(mb.logical_and(x=a, y=b, name=node.name))


@lowers("bitwise_not", "__invert__")
def bool_not(context, node):
    context.add(mb.logical_not(x=mb.cast(x=get(context, node)[0], dtype="bool"), name=node.name))


@lowers("new_ones")
def new_ones(context, node):
    dims = get(context, node)[1]
    dims = [int(d.val) for d in dims] if isinstance(dims, (list, tuple)) else [int(d) for d in np.atleast_1d(dims.val)]
    context.add(mb.const(val=np.ones(dims, dtype=bool), name=node.name))


@lowers("diff")
def diff(context, node):
    given = get(context, node)
    x = given[0] if len(given) < 4 or given[3] is None else mb.concat(values=[given[3], given[0]], axis=-1)
    rank = x.rank
    later = mb.slice_by_index(x=x, begin=[0] * (rank - 1) + [1], end=[0] * rank, end_mask=[True] * rank)
    earlier = mb.slice_by_index(x=x, begin=[0] * rank, end=[0] * (rank - 1) + [-1], end_mask=[True] * (rank - 1) + [False])
    context.add(mb.sub(x=later, y=earlier, name=node.name))


@lowers("isinf")
def isinf(context, node):
    x = get(context, node)[0]
    infinity = np.array(np.inf, dtype=types.nptype_from_builtin(x.dtype))
    context.add(mb.equal(x=mb.abs(x=x), y=infinity, name=node.name))


@lowers("where.scalarother", "where.scalarself", "where.scalar")
def where_scalar(context, node):
    condition, a, b = get(context, node)[:3]
    condition = mb.cast(x=condition, dtype="bool")
    full = next((v for v in (a, b) if v.rank > 0), None)
    if full is None and condition.rank > 0:
        # two numbers: MIL's select would infer rank 0
        a, b = (mb.const(val=np.full(condition.shape, v.val, types.nptype_from_builtin(v.dtype))) for v in (a, b))
    elif full is not None:
        kind = types.builtin_to_string(full.dtype)
        a, b = (mb.cast(x=v, dtype=kind) if v.rank == 0 else v for v in (a, b))
    context.add(mb.select(cond=condition, a=a, b=b, name=node.name))
