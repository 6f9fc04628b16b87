"""The sparse linear layer compared with a dense one."""

import pytest
import torch
from torch import nn

from dgt.ops.sparse import SparseLinear

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")


def sparse_rows(N=30, F=50, density=0.1, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(N, F, generator=generator, dtype=dtype)
    x = x * (torch.rand(N, F, generator=generator) < density)
    x[3] = 0  # an empty row
    x[:, 7] = 0  # an empty column
    return x


@pytest.mark.parametrize("out_channels", [1, 16, 23, 64])
def test_sparse_input_equals_dense_values_and_gradients(out_channels):
    x = sparse_rows()
    layer = SparseLinear(50, out_channels).double()
    nn.init.normal_(layer.bias)
    results = []
    for form in (x, x.to_sparse_csr()):
        layer.zero_grad()
        out = layer(form)
        out.backward(torch.sin(torch.arange(out.numel(), dtype=out.dtype)).view_as(out))
        results.append((out.detach(), layer.weight.grad.clone(), layer.bias.grad.clone()))
    for dense, sparse in zip(*results, strict=True):
        torch.testing.assert_close(sparse, dense)


def test_dropout_drops_stored_values_and_keeps_the_mean():
    layer = SparseLinear(50, 1, dropout=0.5)
    nn.init.ones_(layer.weight)
    x = (sparse_rows(N=4000, dtype=torch.float32) > 0).float()
    dropped = layer(x.to_sparse_csr())
    assert set(dropped.flatten().tolist()) <= {float(n) for n in range(0, 102, 2)}
    assert abs(dropped.sum() / x.sum() - 1) < 0.05
    layer.eval()
    torch.testing.assert_close(layer(x.to_sparse_csr()), x.sum(1, keepdim=True))


@pytest.mark.parametrize(("N", "F"), [(20000, 9), (300, 100)])
def test_dropout_of_dense_input_row_by_row(N, F):
    """The layer is linear: with the identity as weights, the dropped values can be read off."""
    torch.manual_seed(0)
    x, layer = torch.rand(N, F) + 0.5, SparseLinear(F, F, dropout=0.3)
    nn.init.eye_(layer.weight)
    nn.init.constant_(layer.bias, 5.0)
    out = layer(x)
    dropped = out - 5
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], (x / 0.7)[kept], rtol=1e-5, atol=1e-5)
    assert abs(kept.float().mean() - 0.7) < 0.02
    assert not torch.equal(kept[: N // 2], kept[N - N // 2 :])
    upstream = torch.randn(N, F)
    out.backward(upstream)
    torch.testing.assert_close(layer.weight.grad, dropped.t() @ upstream, rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(layer.bias.grad, upstream.sum(0))
