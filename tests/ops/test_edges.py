"""Operations on edges, compared with dense matrices."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dgt.ops import edges

N, H, C = 7, 3, 4


@pytest.fixture
def graph() -> tuple[Tensor, Tensor, Tensor]:
    """crow, col and the mask, shape (N, N); node 0 has no edge."""
    mask = torch.rand(N, N, generator=torch.Generator().manual_seed(1)) < 0.4
    mask[0] = False
    row, col = mask.nonzero(as_tuple=True)
    crow = F.pad(torch.bincount(row, minlength=N).cumsum(0), (1, 0))
    return crow, col, mask


def random(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def agree(fast: Tensor, plain: Tensor, leaves: list[Tensor]) -> None:
    torch.testing.assert_close(fast, plain)
    weights = torch.randn(fast.shape, generator=torch.Generator().manual_seed(5)).double()
    got = torch.autograd.grad((fast * weights).sum(), leaves, retain_graph=True)
    expected = torch.autograd.grad((plain * weights).sum(), leaves, retain_graph=True)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_aggregate(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    crow, col, mask = graph
    weights, values = random(len(col), H), random(N, H, C)
    dense = torch.zeros(N, N, H, dtype=torch.float64).index_put(
        mask.nonzero(as_tuple=True), weights
    )
    plain = torch.einsum("ijh,jhc->ihc", dense, values)
    agree(edges.aggregate(crow, col, weights, values), plain, [weights, values])


def product_scores(q: Tensor, k: Tensor) -> Tensor:
    return torch.einsum("ihc,jhc->ijh", q, k)


def additive_scores(t: Tensor, s: Tensor, a: Tensor) -> Tensor:
    return (F.leaky_relu(t[:, None] + s[None], 0.2) * a).sum(-1)


@pytest.mark.parametrize("scores", [product_scores, additive_scores])
def test_scores_and_softmax(
    graph: tuple[Tensor, Tensor, Tensor], scores: Callable[..., Tensor]
) -> None:
    crow, col, mask = graph
    leaves = [random(N, H, C), random(1, N, H, C)[0]]
    if scores is product_scores:
        fast = edges.products(crow, col, *leaves)
    else:
        leaves.append(random(H, C))
        fast = edges.additive(crow, col, *leaves, 0.2)
    plain = scores(*leaves)
    agree(fast, plain[mask], leaves)
    dense = plain.masked_fill(~mask[..., None], -torch.inf)[1:].softmax(dim=1)
    agree(edges.softmax(crow, fast), dense[mask[1:]], leaves)


def test_directions(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    crow, col, mask = graph
    places, kernels = random(N, C), random(N, H, C + 1)
    row, col = mask.nonzero(as_tuple=True)
    assert (row == col).any()
    with torch.no_grad():
        places[row[0]] = places[col[0]]
    steps = places[col] - places[row]
    apart = steps.norm(dim=1, keepdim=True)
    itself = (row == col).double()[:, None]
    relation = torch.cat([steps / apart.masked_fill(apart == 0, torch.inf), itself], dim=1)
    plain = (kernels[row] * relation[:, None]).sum(-1)
    agree(edges.directional(crow, col, places, kernels, 1e-9), plain, [places, kernels])


def test_gather() -> None:
    rows, index = random(N, C), torch.tensor([3, 0, 3, 6])
    agree(edges.gather(rows, index), rows[index], [rows])
