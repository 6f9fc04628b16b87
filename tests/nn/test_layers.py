"""The sparse linear layer and the norms, against PyTorch's dense ones."""

import pytest
import torch
from torch import nn

from dgt.nn.dropout import (
    Dropout,
    _dropout,
    _dropout_linear,
    _dropout_rows,
    dropout,
    dropout_rows,
    rows_from,
)
from dgt.nn.norm import BatchNorm, LayerNorm, _layer_norm
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
    layer = SparseLinear(50, 1, dropout=0.5)
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
    torch.manual_seed(0)
    x = torch.randn(200, 6, dtype=torch.float64) * 3 + 1
    for _ in range(150):  # batch norm: until the running statistics agree but for n against n - 1
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
def test_layer_norm_is_exact_and_a_proper_operator(dtype):
    torch.manual_seed(0)
    x = (torch.randn(40, 7, dtype=dtype) * 3 + 1).requires_grad_()
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    expected = nn.functional.layer_norm(x, (7,))
    torch.testing.assert_close(LayerNorm(7)(x), expected, rtol=tolerance, atol=tolerance)
    torch.library.opcheck(_layer_norm, (x,))
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


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_rate_scale_and_independence(p):
    torch.manual_seed(0)
    x = torch.full((1000, 1000), 2.0)
    kept = dropout(x, p) != 0
    assert dropout(x, p).unique().tolist() == pytest.approx([0.0, 2 / (1 - p)])
    sigma = (p * (1 - p)) ** 0.5
    assert abs(kept.double().mean() - (1 - p)) < 5 * sigma / 1000
    # Row and column sums, and agreement of neighbours, are those of independent draws.
    for axis in (0, 1):
        spread = kept.double().mean(axis).std()
        assert abs(spread / (sigma / 1000**0.5) - 1) < 0.1
    expected = p * p + (1 - p) ** 2
    for shift in (1, 2, 8, 64, 8192):
        flat = kept.flatten()
        agree = (flat[shift:] == flat[:-shift]).double().mean()
        assert abs(agree - expected) < 5 * (expected * (1 - expected)) ** 0.5 / 990
    again = dropout(x, p) != 0
    assert abs((kept == again).double().mean() - expected) < 0.01


def test_dropout_follows_the_seed_and_not_the_threads():
    before, results = torch.get_num_threads(), []
    x = torch.rand(300, 500)
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            torch.manual_seed(5)
            results.append(dropout(x, 0.4))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)
    torch.manual_seed(6)
    assert not torch.equal(results[0], dropout(x, 0.4))


def test_dropout_gradient_goes_where_the_values_went():
    x = torch.ones(100, 100, dtype=torch.float64, requires_grad=True)
    out = dropout(x, 0.3)
    out.backward(torch.full_like(x, 3.0))
    torch.testing.assert_close(x.grad, 3 * out.detach())
    assert dropout(x, 0.3, training=False) is x
    assert dropout(x, 0.0) is x
    with pytest.raises(ValueError, match=r"below 1, got 1"):
        Dropout(1)


def test_dropout_opcheck():
    x = torch.rand(5, 6, dtype=torch.float64, requires_grad=True)
    for relu in (False, True):
        plus = None if relu else torch.rand(5, 6, dtype=torch.float64, requires_grad=True)
        torch.library.opcheck(_dropout, (x, torch.tensor(7), 0.5, relu, plus, 3))


def test_relu_and_dropout_in_one_pass_equal_one_after_the_other():
    x = torch.randn(200, 300, dtype=torch.float64)
    results = []
    for together in (True, False):
        torch.manual_seed(3)
        z = x.clone().requires_grad_()
        out = dropout(z, 0.4, relu=True) if together else dropout(z.relu(), 0.4)
        out.backward(torch.cos(torch.arange(x.numel())).view_as(x))
        results.append((out.detach(), z.grad))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)
    assert torch.equal(dropout(x, 0.4, training=False, relu=True), x.relu())


@pytest.mark.parametrize("training", [True, False])
def test_dropout_and_sum_in_one_pass(training):
    x, plus = (torch.randn(200, 300, requires_grad=True) for _ in range(2))
    torch.manual_seed(3)
    out = dropout(x, 0.4, training, plus=plus)
    torch.manual_seed(3)
    expected = dropout(x, 0.4, training) + plus
    torch.testing.assert_close(out, expected)
    grads = (torch.autograd.grad(y.square().sum(), [x, plus]) for y in (out, expected))
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("first", [0, 5])
def test_dropout_of_rows_equals_a_product_with_a_mask(first):
    x = torch.randn(300, 7, requires_grad=True)
    results = []
    for at_once in (True, False):
        torch.manual_seed(0)
        with rows_from(first):
            out = dropout_rows(x, 0.4) if at_once else x * dropout(torch.ones(300, 1), 0.4)
        results.append((out, *torch.autograd.grad(out, x, torch.randn_like(x))))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
    assert 0 < (results[0][0] == 0).all(1).sum() < 300
    assert dropout_rows(x, 0.4, training=False) is x


def test_dropout_rows_opcheck():
    x = torch.rand(20, 3, requires_grad=True)
    torch.library.opcheck(_dropout_rows, (x, torch.tensor(7), 0.5, 3))


def test_dropout_does_not_hide_nan():
    assert dropout(torch.full((1000,), float("nan")), 0.5, relu=True).isnan().any()


@pytest.mark.parametrize(("N", "F"), [(20000, 9), (300, 100)])
def test_dropout_of_dense_input_row_by_row(N, F):
    """Linear in the input: with weights that pick single features, the drops can be read off."""
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


def test_dropout_linear_opcheck():
    x = torch.rand(5, 6, dtype=torch.float64)
    weight, bias = (
        torch.rand(*shape, dtype=torch.float64, requires_grad=True) for shape in ((6, 3), (3,))
    )
    torch.library.opcheck(_dropout_linear, (x, weight, bias, torch.tensor(7), 0.5, 3))
