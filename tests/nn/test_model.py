"""DeformableGraphAttention and DGT: equations, gradients and return values."""

import pytest
import torch

from dgt.config import Config, ModelConfig, SequenceConfig
from dgt.nn import DGT, DeformableGraphAttention, DGTLight, Kernel, build
from dgt.nn.level import Level
from dgt.ops.deformable_attention import reference as interpolation
from tests.ops.conftest import make_case


def sequences_of(N, T, L, **options):
    return make_case(N=N, T=T, M=1, K=1, L=L, D=1, **options)[1]


def disturb(module):
    """Randomizes all weights, as the initial zeros would hide mistakes, and disables dropout."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return module.eval()


def test_attention_equals_the_equation_written_out():
    C, T, M, K, N, L = 6, 2, 3, 2, 8, 5
    kernel = Kernel(normalize=False)
    dga = disturb(DeformableGraphAttention(C, criteria=T, heads=M, keys=K, kernel=kernel))
    z, sequences = torch.randn(N, C), sequences_of(N, T, L)
    out = dga(z, sequences)
    D = C // M
    expected = torch.zeros(N, C)
    for q in range(N):
        offset, a = dga.query(z[q]).view(2, T, M, K) + dga.start
        a = a.softmax(-1)
        for t in range(T):
            nodes = [v for v in sequences[t, q].tolist() if v >= 0]
            p = (len(nodes) - 1) * offset[t].sigmoid()
            for m in range(M):
                rows = slice((t * M + m) * D, (t * M + m + 1) * D)
                W, W_prime = dga.out.weight[:, rows], dga.values.weight[rows]
                for k in range(K):
                    for i, v in enumerate(nodes):
                        if abs(p[m, k] - i) < 4:
                            g = torch.exp(-((p[m, k] - i) ** 2) / 4)
                            expected[q] += W @ (a[t, m, k] * g * (W_prime @ z[v]))
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


def test_keys_start_spread_over_the_sequence_and_equally_attended():
    dga = DeformableGraphAttention(8, criteria=2, heads=2, keys=4)
    offsets, attention = interpolation.sample(dga.queries(torch.randn(5, 8)))
    spread = (torch.tensor([[0, 2, 4, 6], [1, 3, 5, 7]]) + 0.5) / 8
    torch.testing.assert_close(offsets, spread.expand(5, 2, 2, 4))
    torch.testing.assert_close(attention, torch.full((5, 2, 2, 4), 0.25))


def test_every_parameter_learns():
    model = disturb(DGT(5, 8, 3, criteria=2, heads=2, keys=2, blocks=2, encoding_channels=10))
    logits = model(torch.randn(10, 5), sequences_of(10, 2, 6), torch.rand(10, 10))
    assert logits.shape == (10, 3)
    logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_renaming_the_nodes_renames_the_output():
    N, T, L = 12, 2, 6
    model = disturb(DGT(5, 8, 3, criteria=T, heads=2, keys=2)).eval()
    x, sequences = torch.randn(N, 5), sequences_of(N, T, L)
    new = torch.randperm(N)
    old = new.argsort()
    renamed = torch.where(sequences >= 0, old.int()[sequences.clamp(min=0).long()], -1)
    expected = model(x, sequences)[new]
    torch.testing.assert_close(model(x[new], renamed[:, new]), expected, rtol=1e-4, atol=1e-5)


def test_the_fused_path_equals_the_reference_in_the_whole_model(monkeypatch):
    model = disturb(DGT(5, 8, 3, criteria=2, heads=2, keys=2, blocks=2)).double()
    x, sequences = torch.randn(12, 5, dtype=torch.float64), sequences_of(12, 2, 6)
    fused = model(x, sequences)
    plain = interpolation.deformable_attention
    # Without the last argument, an exchange between ranks.
    monkeypatch.setattr("dgt.nn.attention.deformable_attention", lambda *each: plain(*each[:4]))
    torch.testing.assert_close(model(x, sequences), fused)


def test_other_dtypes_use_the_reference():
    dga = disturb(DeformableGraphAttention(8, criteria=2, heads=2, keys=2)).bfloat16()
    z, sequences = torch.randn(12, 8), sequences_of(12, 2, 6)
    out = dga(z.bfloat16(), sequences)
    torch.testing.assert_close(out.float(), dga.float()(z, sequences), rtol=0.1, atol=0.3)


def test_attention_as_node_key_weight():
    N, T, M, L = 10, 2, 2, 6
    model = disturb(DGT(5, 8, 3, criteria=T, heads=M, keys=2, blocks=2)).eval()
    x, sequences = torch.randn(N, 5), sequences_of(N, T, L)
    for block, module in enumerate(model.blocks):
        z = model.embed(x)
        for before in model.blocks[:block]:
            z = before(z, Level(sequences))
        dga, z = module.attention, module.norm(z)
        attended = model.attention(x, sequences, block=block)
        assert len(attended) == T
        assert all(len(heads) == M for heads in attended)
        # The values, weighted by these entries, must give the output of the attention.
        values = dga.values(z).view(N, T, M, -1)
        mixed = torch.zeros_like(values)
        for t, heads in enumerate(attended):
            for m, (node, key, weight) in enumerate(heads):
                mixed[:, t, m].index_add_(0, node, weight[:, None] * values[key, t, m])
        torch.testing.assert_close(dga.out(mixed.flatten(1)), dga(z, sequences))


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("feature_layers", [1, 3])
def test_some_nodes_get_the_logits_that_they_get_among_all(blocks, feature_layers):
    model = disturb(DGT(5, 8, 3, criteria=2, blocks=blocks, feature_layers=feature_layers)).eval()
    x, sequences, nodes = torch.randn(10, 5), sequences_of(10, 2, 6), torch.tensor([7, 0, 3])
    some, everyone = model(x, sequences, nodes=nodes), model(x, sequences)
    torch.testing.assert_close(some, everyone[nodes], rtol=1e-5, atol=1e-5)
    weights = list(model.parameters())
    for a, b in zip(
        torch.autograd.grad(some.sin().sum(), weights),
        torch.autograd.grad(everyone[nodes].sin().sum(), weights),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_dropped_node_is_read_as_zero_and_still_reads():
    torch.manual_seed(0)
    settings = {"criteria": 1, "heads": 2, "keys": 2}
    whole = disturb(DeformableGraphAttention(8, **settings))
    dga = DeformableGraphAttention(8, **settings, dropout=0.5).train()
    dga.load_state_dict(whole.state_dict())
    N = 400
    z = torch.randn(N, 8)
    alone = torch.arange(N, dtype=torch.int32).view(1, N, 1)  # each node reads itself
    out, expected = dga(z, alone), whole(z, alone)
    dropped = (out == 0).all(1)
    assert dropped.double().mean().item() == pytest.approx(0.5, abs=0.1)
    torch.testing.assert_close(out[~dropped], 2 * expected[~dropped])
    torch.testing.assert_close(dga.eval()(z, alone), expected)


def test_light_has_one_criterion():
    light = DGTLight(5, 8, 3)
    assert light(torch.randn(6, 5), sequences_of(6, 1, 4)).shape == (6, 3)
    with pytest.raises(ValueError, match=r"shape \(1, N, L\), got \(3, 6, 4\)"):
        light(torch.randn(6, 5), sequences_of(6, 3, 4))


def test_an_encoding_is_required_if_and_only_if_the_model_was_built_for_one():
    x, sequences = torch.randn(6, 5), sequences_of(6, 3, 4)
    with pytest.raises(ValueError, match="built for no positional encoding, got one"):
        DGT(5, 8, 3)(x, sequences, torch.rand(6, 6))
    with pytest.raises(ValueError, match="built for a positional encoding, got none"):
        DGT(5, 8, 3, encoding_channels=6)(x, sequences)


def test_build_follows_the_settings():
    config = Config(
        sequences=SequenceConfig(criteria=("ppr",)),
        model=ModelConfig(
            model="dgt-light", hidden_channels=12, heads=3, keys=2, blocks=2, mlp_ratio=0.5,
            interpolation="bilinear", norm="batch",
        ),
    )  # fmt: skip
    model = build(config, in_channels=5, out_channels=4, encoding_channels=0)
    dga = model.blocks[1].attention
    assert (dga.criteria, dga.heads, dga.keys, dga.channels) == (1, 3, 2, 12)
    assert dga.kernel.interpolation == "bilinear"
    assert len(model.blocks) == 2
    assert model.encoding is None
    assert model(torch.randn(6, 5), sequences_of(6, 1, 4)).shape == (6, 4)


def test_compiles():
    """torch.compile accepts the whole model; the eager backend needs no C++ compiler."""
    model = disturb(DGT(5, 8, 3, criteria=2, heads=2, keys=2))
    x, sequences = torch.randn(10, 5), sequences_of(10, 2, 6)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    expected = model(x, sequences)
    torch.testing.assert_close(compiled(x, sequences), expected)
    expected.sum().backward()
    eager = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    compiled(x, sequences).sum().backward()
    for parameter, grad in zip(model.parameters(), eager, strict=True):
        torch.testing.assert_close(parameter.grad, grad)
