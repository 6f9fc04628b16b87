"""The norms compared with PyTorch's."""

import pytest
import torch
from torch import nn

from dgt.ops.norm import BatchNorm, LayerNorm
from dgt.ops.sparse import SparseLinear


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"), [(LayerNorm, nn.LayerNorm), (BatchNorm, nn.BatchNorm1d)]
)
def test_norm_equals_torch(ours, theirs, training):
    ours, theirs = ours(6).double(), theirs(6).double()
    torch.manual_seed(0)
    x = torch.randn(200, 6, dtype=torch.float64) * 3 + 1
    for _ in range(150):  # until the running statistics of batch norm agree, up to n versus n - 1
        ours(x), theirs(x)
    results = []
    for norm in (ours.train(training), theirs.train(training)):
        z = x.clone().requires_grad_()
        out = norm(z)
        out.backward(torch.cos(torch.arange(out.numel(), dtype=out.dtype)).view_as(out))
        results.append((out.detach(), z.grad))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=6e-3, atol=6e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layer_norm_is_exact(dtype):
    torch.manual_seed(0)
    x = (torch.randn(40, 7, dtype=dtype) * 3 + 1).requires_grad_()
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    expected = nn.functional.layer_norm(x, (7,))
    torch.testing.assert_close(LayerNorm(7)(x), expected, rtol=tolerance, atol=tolerance)
    if dtype == torch.float64:
        torch.autograd.gradcheck(LayerNorm(7), x)


@pytest.mark.parametrize("make", [LayerNorm, BatchNorm, lambda c: SparseLinear(c, 64)])
def test_gradients_have_the_same_bits_for_one_and_two_threads(make):
    torch.manual_seed(0)
    layer, x = make(64), torch.randn(5000, 64, requires_grad=True)
    before, grads = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            loss = layer(x).sin().sum()
            grads.append(torch.autograd.grad(loss, [x, *layer.parameters()]))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))
