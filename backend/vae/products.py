"""Products of matrices by oneDNN, which torch comes with, where it can.

What torch uses by itself takes narrow registers on processors of some makers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_AVAILABLE = hasattr(torch.ops.mkldnn, "_linear_pointwise")
FEWEST = 8
"""Rows below which it takes longer."""


def product(x: Tensor, weight: Tensor) -> Tensor:
    """`(rows, outputs)` of inputs `(rows, inputs)` and weights `(outputs, inputs)`."""
    if not _AVAILABLE or len(x) < FEWEST or x.dtype != torch.float32 or x.device.type != "cpu":
        return x @ weight.t()
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        found: Tensor = _Product.apply(x, weight)  # type: ignore[no-untyped-call]
        return found
    return _by_onednn(x, weight)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _by_onednn(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        by_x, by_weight = ctx.needs_input_grad
        return (
            _by_onednn(slope, weight.t()) if by_x else None,
            _by_onednn(slope.t(), x.t()) if by_weight else None,
        )


def _by_onednn(x: Tensor, weight: Tensor) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    return found
