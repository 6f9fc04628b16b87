import pytest
import torch


@pytest.fixture
def attention_case():
    return make_case


def make_case(N, T, M, K, L, D, Q=None, seed=0, dtype=torch.float64, full=False):
    """Returns values, padded sequences of distinct nodes, and queries."""
    Q = N if Q is None else Q
    generator = torch.Generator().manual_seed(seed)

    def random(*shape):
        return torch.rand(*shape, generator=generator, dtype=dtype)

    order = random(T, Q, N).argsort(-1)[..., :L].int()  # (T, Q, min(L, N))
    sequences = torch.full((T, Q, L), -1, dtype=torch.int32)
    sequences[..., : order.size(2)] = order
    if not full:
        n = torch.randint(1, order.size(2) + 1, (T, Q, 1), generator=generator)
        sequences[torch.arange(L) >= n] = -1
    # Offsets anywhere in the sequence, and attention weights with ratios of up to exp(5).
    query = torch.stack([torch.logit(random(Q, T, M, K)), 5 * random(Q, T, M, K)], dim=1)
    return random(N, T, M, D) - 0.5, sequences, query
