"""A device that is not the CPU, for a machine that has no other.

Inside `Elsewhere`, tensors that are asked for on `DEVICE` are made on the CPU and marked, and so is what comes of them; they
say that they are on `DEVICE`. Functions of marked and other tensors are refused, as a real device does; a single CPU number
may be among them.
"""

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_unflatten

DEVICE = torch.device("meta")
_CPU = torch.device("cpu")


def _marked(tensor):
    return getattr(tensor, "elsewhere", False)


class Elsewhere(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), options=None):
        flat, form = tree_flatten((arguments, options or {}))
        devices = [value for value in flat if isinstance(value, torch.device)]
        tensors = [value for value in flat if isinstance(value, Tensor)]
        marks = {_marked(tensor) for tensor in tensors if _marked(tensor) or tensor.dim() > 0}
        if function == Tensor.device.__get__:
            return DEVICE if True in marks else _CPU
        if function is Tensor.cpu:
            mark = False
        elif devices:
            mark = DEVICE in devices
        elif function is Tensor.to:  # a device was not named: it is that of the last tensor
            mark = _marked(tensors[-1])
        else:
            if len(marks) > 1 or (True in marks and function is Tensor.numpy):
                raise RuntimeError(f"{function.__name__} of tensors on the CPU and elsewhere")
            mark = True in marks
        arguments, options = tree_unflatten([_CPU if isinstance(v, torch.device) else v for v in flat], form)
        found = function(*arguments, **options)
        if isinstance(found, Tensor) and _marked(found) != mark:
            found = found.clone()  # it has moved
        for value in tree_flatten(found)[0]:
            if isinstance(value, Tensor):
                value.elsewhere = mark
        return found
