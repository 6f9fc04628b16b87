"""The sparse linear layer and the norms, against PyTorch's dense ones."""

import pytest
import torch
from torch import nn

from dgt.nn.norm import BatchNorm, LayerNorm
from dgt.nn.sparse import SparseLinear, _matmul

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
    layer = SparseLinear(50, 1, bias=False, dropout=0.5)
    nn.init.ones_(layer.weight)
    x = (sparse_rows(N=4000, dtype=torch.float32) > 0).float()
    dropped = layer(x.to_sparse_csr())
    assert set(dropped.flatten().tolist()) <= {float(n) for n in range(0, 102, 2)}
    assert abs(dropped.sum() / x.sum() - 1) < 0.05
    layer.eval()
    torch.testing.assert_close(layer(x.to_sparse_csr()), x.sum(1, keepdim=True))


def test_csr_opcheck():
    x = sparse_rows().to_sparse_csr()
    weight = torch.randn(50, 8, dtype=torch.float64, requires_grad=True)
    parts = (part.clone() for part in (x.crow_indices(), x.col_indices(), x.values()))
    torch.library.opcheck(_matmul, (*parts, weight))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"), [(LayerNorm, nn.LayerNorm), (BatchNorm, nn.BatchNorm1d)]
)
def test_norm_equals_torch(ours, theirs, training):
    ours, theirs = ours(6).double(), theirs(6).double()
    for norm in (ours, theirs):
        torch.manual_seed(0)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    x = torch.randn(200, 6, dtype=torch.float64) * 3 + 1
    for _ in range(150):  # batch norm: until the running statistics agree but for n against n - 1
        ours(x), theirs(x)
    results = []
    for norm in (ours.train(training), theirs.train(training)):
        z = x.clone().requires_grad_()
        out = norm(z)
        out.backward(torch.cos(torch.arange(out.numel(), dtype=out.dtype)).view_as(out))
        results.append((out.detach(), z.grad, norm.weight.grad, norm.bias.grad))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=6e-3, atol=6e-3)


@pytest.mark.parametrize("make", [LayerNorm, BatchNorm, lambda c: SparseLinear(c, 64)])
def test_gradients_have_the_same_bits_for_one_and_two_threads(make):
    torch.manual_seed(0)
    layer, x = make(64), torch.randn(5000, 64)
    before, grads = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            layer.zero_grad()
            layer(x).square().sum().backward()
            grads.append([p.grad.clone() for p in layer.parameters()])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))
