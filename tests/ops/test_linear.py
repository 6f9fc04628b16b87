"""The linear layer compared with PyTorch's, and its bits for any number of threads."""

import pytest
import torch

from dgt.ops.linear import Linear
from dgt.ops.sparse import SparseLinear

SIZES = [(64, 7), (64, 10), (16, 5), (7, 64), (5, 16), (9, 48), (64, 64), (6, 7)]


@pytest.mark.parametrize(("in_channels", "out_channels"), SIZES)
@pytest.mark.parametrize("kind", [Linear, SparseLinear])
def test_the_number_of_threads_does_not_change_a_bit(kind, in_channels: int, out_channels: int):
    torch.manual_seed(0)
    x = torch.randn(2000, in_channels, requires_grad=True)
    grad = torch.randn(2000, out_channels)
    layer = kind(in_channels, out_channels)
    results, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            out = layer(x)
            results.append([out, *torch.autograd.grad(out, [x, *layer.parameters()], grad)])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize(("in_channels", "out_channels"), SIZES)
@pytest.mark.parametrize("bias", [True, False])
def test_it_equals_the_linear_layer_of_pytorch(in_channels: int, out_channels: int, bias: bool):
    torch.manual_seed(0)
    layer = Linear(in_channels, out_channels, bias=bias).double()
    x = torch.randn(50, in_channels, dtype=torch.double, requires_grad=True)
    expected = torch.nn.functional.linear(x, layer.weight, layer.bias)
    assert torch.allclose(layer(x), expected)
    if not bias:
        plus = torch.randn(50, out_channels, dtype=torch.double)
        assert torch.allclose(layer(x, plus=plus), expected + plus)
    inputs = [x, *layer.parameters()]
    for ours, theirs in zip(
        torch.autograd.grad(layer(x).sin().sum(), inputs),
        torch.autograd.grad(expected.sin().sum(), inputs),
        strict=True,
    ):
        assert torch.allclose(ours, theirs)


def test_more_than_two_dimensions() -> None:
    layer, x = Linear(4, 3), torch.randn(2, 5, 4)
    torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
