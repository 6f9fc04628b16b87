"""Processing the nodes in chunks gives the same results as all nodes at once."""

import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor

from dgt.data.matrices import to_torch
from dgt.nn import DGT
from dgt.nn.rows import AllAtOnce, Chunks, using
from dgt.ops.sparse import Rows, gather_rows, take_rows

N, F, ANCHORS, CLASSES = 57, 9, 11, 4


def inputs(sparse: bool) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(0)
    x, encoding = (torch.rand(N, width, generator=random) for width in (F, ANCHORS))
    sequences = torch.stack(
        [torch.stack([torch.randperm(N, generator=random)[:7] for _ in range(N)]) for _ in range(3)]
    )
    sequences[:, :, 0] = torch.arange(N)
    sequences[1, ::3, 4:] = -1
    if sparse:
        x, encoding = (to_torch(csr_array((m * (m > 0.6)).numpy())) for m in (x, encoding))
    return {"x": x, "sequences": sequences.int(), "encoding": encoding}


def model(blocks: int, dropout: float = 0.4) -> DGT:
    torch.manual_seed(1)
    made = DGT(
        F,
        16,
        CLASSES,
        blocks=blocks,
        feature_layers=2,
        encoding_channels=ANCHORS,
        dropout=dropout,
        input_dropout=dropout,
        encoding_dropout=dropout,
        node_dropout=dropout,
        value_dropout=dropout,
    )
    for block in made.blocks:  # so that keys differ between nodes
        torch.nn.init.normal_(block.attention.query.weight, std=0.5)
    return made


def outcome(way: AllAtOnce, blocks: int, sparse: bool, nodes: Tensor | None) -> list[Tensor]:
    """Returns the logits, the gradients of all weights and the next random number."""
    net = model(blocks)
    torch.manual_seed(2)
    given = inputs(sparse)
    given |= {name: Rows(given[name]) for name in ("x", "encoding")}
    with using(way):
        logits = net(**given, nodes=nodes)
    (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum().backward()
    return [logits.detach(), *(p.grad for p in net.parameters()), torch.rand(())]


@pytest.mark.parametrize("size", [1000, 20, 1])
@pytest.mark.parametrize(("blocks", "sparse"), [(1, False), (2, True)])
@pytest.mark.parametrize("some", [False, True])
def test_chunks_give_the_logits_and_gradients_of_the_whole(size, blocks, sparse, some):
    nodes = torch.arange(2, N, 3) if some else None
    whole = outcome(AllAtOnce(), blocks, sparse, nodes)
    chunks = outcome(Chunks(size), blocks, sparse, nodes)
    for a, b in zip(whole, chunks, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)


def test_rows_of_sparse_matrices():
    x = inputs(sparse=True)["x"]
    nodes = torch.tensor([5, 0, 56, 5])
    assert torch.equal(gather_rows(x, nodes).to_dense(), x.to_dense()[nodes])
    part = take_rows(take_rows(x, 10, 40), 5, 9)
    assert torch.equal(part.matrix.to_dense(), x.to_dense()[15:19])
    assert part.before == int((x.to_dense()[:15] != 0).sum())
