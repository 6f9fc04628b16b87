"""The equation of each model, compared with PyG's layers or dense algebra on a small graph."""

import pytest
import scipy.sparse
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    MixHopConv,
    SAGEConv,
    SGConv,
    TransformerConv,
)
from torch_geometric.utils import to_undirected

from dgt import baselines
from dgt.baselines.gat import GATLayer
from dgt.baselines.gatv2 import GATv2Layer
from dgt.baselines.gcn import GCNLayer
from dgt.baselines.graphormer import MAX_DISTANCE
from dgt.baselines.graphsage import SAGELayer
from dgt.baselines.mixhop import MixHopLayer
from dgt.config import Config
from dgt.data.matrices import to_torch
from dgt.prepare import prepare
from tests.small import block_graph

N = 40


@pytest.fixture
def data():
    data = block_graph(nodes=N)
    data.edge_index = to_undirected(data.edge_index, num_nodes=N)
    torch.manual_seed(0)
    return data


def inputs(data, model: str, **settings) -> dict[str, Tensor]:
    return prepare(data, Config.of(model).replace(**settings))


def sparse(x: Tensor) -> Tensor:
    return to_torch(scipy.sparse.csr_array(x.numpy()))


def adjacency(data) -> Tensor:
    A = torch.zeros(N, N)
    A[data.edge_index[0], data.edge_index[1]] = 1
    return A


def symmetric(A: Tensor) -> Tensor:
    roots = A.sum(1).clamp(min=1).rsqrt()
    return roots[:, None] * A * roots


def test_gcn_layer(data):
    ours, pyg = GCNLayer(12, 5), GCNConv(12, 5)
    pyg.lin.weight.data = ours.lin.weight.t()
    pyg.bias.data = ours.bias.data = torch.randn(5)
    for x in (data.x, sparse(data.x)):
        out = ours(x, inputs(data, "gcn")["normalized"])
        torch.testing.assert_close(out, pyg(data.x, data.edge_index))


def test_sage_layer(data):
    ours, pyg = SAGELayer(12, 5), SAGEConv(12, 5)
    pyg.lin_l.weight.data, pyg.lin_r.weight.data = ours.lin_l.weight.t(), ours.lin_r.weight.t()
    pyg.lin_l.bias.data = ours.lin_r.bias.data = torch.randn(5)
    for x in (data.x, sparse(data.x)):
        out = ours(x, inputs(data, "graphsage")["mean"])
        torch.testing.assert_close(out, pyg(data.x, data.edge_index))


def test_mixhop_layer(data):
    ours, pyg = MixHopLayer(12, 5), MixHopConv(12, 5, powers=[0, 1, 2])
    for a, b in zip(ours.lins, pyg.lins, strict=True):
        b.weight.data = a.weight.t()
    pyg.bias.data = ours.bias.data = torch.randn(15)
    for x in (data.x, sparse(data.x)):
        out = ours(x, inputs(data, "mixhop")["normalized"])
        torch.testing.assert_close(out, pyg(data.x, data.edge_index))


@pytest.mark.parametrize("concat", [True, False])
def test_gat_layer(data, concat: bool):
    ours, pyg = GATLayer(12, 5, 3, concat=concat), GATConv(12, 5, 3, concat=concat)
    pyg.lin.weight.data = ours.lin.weight.t()
    for name in ("att_src", "att_dst", "bias"):
        getattr(ours, name).data = getattr(pyg, name).data = torch.randn_like(getattr(pyg, name))
    for x in (data.x, sparse(data.x)):
        out = ours(x, inputs(data, "gat")["joined"])
        torch.testing.assert_close(out, pyg(data.x, data.edge_index))


@pytest.mark.parametrize("concat", [True, False])
def test_gatv2_layer(data, concat: bool):
    ours, pyg = GATv2Layer(12, 5, 3, concat=concat), GATv2Conv(12, 5, 3, concat=concat)
    for name in ("lin_l", "lin_r"):
        getattr(pyg, name).weight.data = getattr(ours, name).weight.t()
        getattr(pyg, name).bias.data = getattr(ours, name).bias.data = torch.randn(15)
    pyg.att.data, pyg.bias.data = ours.att.data, ours.bias.data
    for x in (data.x, sparse(data.x)):
        out = ours(x, inputs(data, "gatv2")["joined"])
        torch.testing.assert_close(out, pyg(data.x, data.edge_index))


def test_sgc(data):
    model, pyg = baselines.SGC(12, 16, 3), SGConv(12, 3, K=3)
    pyg.lin.weight.data, pyg.lin.bias.data = model.out.weight.t(), model.out.bias
    out = model(**inputs(data, "sgc", layers=3))
    torch.testing.assert_close(out, pyg(data.x, data.edge_index))


def test_mlp_and_gcn_and_jknet(data):
    S = symmetric(adjacency(data) + torch.eye(N))
    mlp = baselines.MLP(12, 8, 3, layers=3).eval()
    first, second, third = mlp.layers
    hidden = torch.relu(second(torch.relu(first(data.x))))
    torch.testing.assert_close(mlp(data.x), third(hidden))
    given = inputs(data, "gcn")
    gcn = baselines.GCN(12, 8, 3).eval()
    W0, W1 = (layer.lin.weight for layer in gcn.layers)
    torch.testing.assert_close(gcn(**given), S @ torch.relu(S @ data.x @ W0) @ W1)
    jknet = baselines.JKNet(12, 8, 3).eval()
    W0, W1 = (layer.lin.weight for layer in jknet.layers)
    one = torch.relu(S @ data.x @ W0)
    two = torch.relu(S @ one @ W1)
    torch.testing.assert_close(jknet(**given), jknet.out(torch.cat([one, two], dim=1)))


def test_h2gcn(data):
    A = adjacency(data)
    far = ((A @ A > 0) & (A == 0) & ~torch.eye(N, dtype=torch.bool)).float()
    assert far.sum() > 0
    one, two = symmetric(A), symmetric(far)
    model = baselines.H2GCN(12, 8, 3).eval()
    r0 = torch.relu(model.embed(data.x))
    r1 = torch.cat([one @ r0, two @ r0], dim=1)
    r2 = torch.cat([one @ r1, two @ r1], dim=1)
    expected = model.out(torch.cat([r0, r1, r2], dim=1))
    torch.testing.assert_close(model(**inputs(data, "h2gcn")), expected)


def plain_attention(attention, z: Tensor, mask: Tensor, bias: Tensor | None = None) -> Tensor:
    """Attention with loops over nodes and heads."""
    D = z.size(1) // attention.heads
    q, (k, v) = attention.queries(z), attention.key_value(z).chunk(2, dim=1)
    out = torch.zeros_like(z)
    for i in range(len(z)):
        keys = mask[i].nonzero()[:, 0]
        for m in range(attention.heads):
            part = slice(m * D, (m + 1) * D)
            scores = k[keys, part] @ q[i, part] / D**0.5
            if bias is not None:
                scores = scores + bias[m, i, keys]
            out[i, part] = scores.softmax(0) @ v[keys, part]
    return attention.out(out)


@torch.no_grad()
def test_transformer(data):
    model = baselines.Transformer(12, 16, 3, heads=2, blocks=2).eval()
    z = model.embed(data.x)
    everyone = torch.ones(N, N)
    for block in model.blocks:
        z = z + plain_attention(block.attention, F.layer_norm(z, (16,)), everyone)
        z = z + block.out(torch.relu(block.hidden[1](F.layer_norm(z, (16,)))))
    expected = model.head[2](F.layer_norm(z, (16,)))
    torch.testing.assert_close(model(data.x), expected, rtol=1e-4, atol=1e-5)
    weights = model.blocks[0].attention.weights(model.embed(data.x))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, N))


@torch.no_grad()
def test_graphormer(data):
    model = baselines.Graphormer(12, 16, 3, heads=2).eval()
    given = inputs(data, "graphormer")
    A = adjacency(data)
    model.bias.normal_()
    torch.testing.assert_close(given["degrees"], A.sum(1).long())
    hops = torch.full((N, N), MAX_DISTANCE + 1)
    for k in range(N, -1, -1):
        reached = torch.matrix_power(A, k) > 0
        hops[reached] = min(k, MAX_DISTANCE)
    assert torch.equal(given["distances"].long(), hops)
    z = model.embed(data.x) + model.centrality[A.sum(1).long()]
    bias = model.bias[:, hops]
    (block,) = model.blocks
    z = z + plain_attention(block.attention, F.layer_norm(z, (16,)), torch.ones(N, N), bias)
    z = z + block.out(torch.relu(block.hidden[1](F.layer_norm(z, (16,)))))
    expected = model.head[2](F.layer_norm(z, (16,)))
    torch.testing.assert_close(model(**given), expected, rtol=1e-4, atol=1e-5)
    nodes = torch.tensor([3, 1])
    torch.testing.assert_close(model.attention(**given, nodes=nodes).sum(-1), torch.ones(2, 2))


@torch.no_grad()
@pytest.mark.parametrize("model", ["gt-full", "gt-sparse"])
def test_gt(data, model: str):
    sparse = model == "gt-sparse"
    network = (baselines.GTSparse if sparse else baselines.GTFull)(12, 16, 3, heads=2, norm="layer")
    network.eval()
    given = inputs(data, model)
    mask = adjacency(data) + torch.eye(N) if sparse else torch.ones(N, N)
    h = network.embed(data.x) + given["laplacian"] @ network.positions.weight.t()
    (block,) = network.blocks
    h = F.layer_norm(h + plain_attention(block.attention, h, mask), (16,))
    h = F.layer_norm(h + block.out(torch.relu(block.hidden[0](h))), (16,))
    torch.testing.assert_close(network(**given), network.head[1](h), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_sparse_attention_is_that_of_pyg(data):
    attention = baselines.GTSparse(12, 16, 3, heads=2).blocks[0].attention
    pyg = TransformerConv(16, 8, heads=2, root_weight=False)
    for ours, theirs in (
        (attention.queries, [pyg.lin_query]),
        (attention.key_value, [pyg.lin_key, pyg.lin_value]),
    ):
        for linear, W, b in zip(
            theirs, ours.weight.chunk(len(theirs)), ours.bias.chunk(len(theirs)), strict=True
        ):
            linear.weight.data, linear.bias.data = W, b
    z = torch.randn(N, 16)
    loops = torch.arange(N).expand(2, -1)
    expected = attention.out(pyg(z, torch.cat([data.edge_index, loops], dim=1)))
    torch.testing.assert_close(attention(z, inputs(data, "gat")["joined"]), expected)


def test_gt_draws_signs_in_training(data):
    network = baselines.GTFull(12, 16, 3, dropout=0, input_dropout=0)
    given = inputs(data, "gt-full")
    assert not torch.equal(network(**given), network(**given))
    network.eval()
    assert torch.equal(network(**given), network(**given))


@torch.no_grad()
def test_geom_gcn(data):
    given = inputs(data, "geom-gcn")
    model = baselines.GeomGCN(12, 8, 3).eval()
    R = 9
    relations = given["latent_relations"].to_dense().view(N, R, N, R)
    # The relations do not mix.
    assert all((relations[:, r, :, s] == 0).all() for r in range(R) for s in range(R) if r != s)

    def layer(linear, h: Tensor) -> list[Tensor]:
        outs = linear(h).view(N, R, -1)
        return [relations[:, r, :, r] @ outs[:, r] for r in range(R)]

    h = torch.relu(torch.cat(layer(model.first.linear, data.x), dim=1))
    expected = torch.stack(layer(model.last.linear, h)).mean(0)
    torch.testing.assert_close(model(**given), expected)


@torch.no_grad()
def test_deformable_gcn(data):
    given = inputs(data, "deformable-gcn", neighbors=4)
    model = baselines.DeformableGCN(12, 8, 3, blocks=2).eval()
    for weight in model.parameters():
        weight.add_(0.3 * torch.randn_like(weight))
    A = adjacency(data)
    mean = A / A.sum(1, keepdim=True).clamp(min=1)

    def convolve(convolution, h, e, W_projected, neighbors):
        phi, hidden = (e @ W_projected).split([3, 8], dim=1)
        hidden = torch.relu(hidden + convolution.deform_bias)
        deformation = convolution.deform_out(hidden).view(N, 4, 4)
        kernels = F.normalize(convolution.kernels, dim=1) + deformation
        W = convolution.values.weight.view(4, -1, 8)
        y = torch.zeros(N, W.size(1))
        for v in range(N):
            r = torch.zeros(len(neighbors[v]), 4)
            for n, u in enumerate(neighbors[v]):
                step = phi[u] - phi[v]
                r[n, 3] = u == v
                if step.norm() > 1e-5:  # nodes with the same neighbors may coincide
                    r[n, :3] = step / step.norm()
            a = (r @ kernels[v].t()).softmax(0)
            for k in range(4):
                y[v] += W[k] @ (a[:, k] @ h[neighbors[v]])
        return F.normalize(y + convolution.bias, dim=1)

    def apply(block, h):
        e, each = data.x, []
        weights = block.project.weight.split(11, dim=1)
        for l, (convolution, W_projected) in enumerate(
            zip(block.convolutions, weights, strict=True)
        ):
            if l == 0:
                neighbors = [(A + torch.eye(N))[v].nonzero()[:, 0] for v in range(N)]
            else:
                e = mean @ e if l > 1 else e
                apart = torch.cdist(e.double(), e.double())
                neighbors = [apart[v].argsort()[:4] for v in range(N)]
                found = given["smoothed_neighbors"][l - 1]
                assert all(set(found[v].tolist()) == set(neighbors[v].tolist()) for v in range(N))
            each.append(convolve(convolution, h, e, W_projected, neighbors))
        stacked = torch.stack(each)
        share = (stacked @ block.z).softmax(0)
        return (share[..., None] * stacked).sum(0)

    h = torch.relu(model.embed(data.x))
    h = torch.relu(h + apply(model.blocks[0], h))
    expected = apply(model.blocks[1], h)
    torch.testing.assert_close(model(**given), expected, rtol=1e-4, atol=1e-4)


def test_gradients_of_deformable_gcn_do_not_explode_where_nodes_coincide(data):
    gradients = []
    for precision in ("single", "double"):
        torch.manual_seed(0)
        model = baselines.DeformableGCN(12, 8, 3).eval()
        given = inputs(data, "deformable-gcn", neighbors=4, precision=precision)
        model = model.double() if precision == "double" else model
        F.cross_entropy(model(**given), data.y).backward()
        gradients.append(model.blocks[0].project.weight.grad.float())
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-6)
