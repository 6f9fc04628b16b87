"""The readable reference, compared with the sums of the paper in plain Python loops."""

import math

import pytest
import torch

from dgt.ops.deformable_attention.reference import (
    Kernel,
    deformable_attention,
    position_weights,
    sequence_lengths,
)


def written_out(values, sequences, query, g):
    """Computes the inner sums of the DGA equation; ``g`` is the kernel as a Python function."""
    _, T, M, D = values.shape
    Q, K = query.size(0), query.size(4)
    out = torch.zeros(Q, T, M, D, dtype=values.dtype)
    for q in range(Q):
        for t in range(T):
            nodes = [v for v in sequences[t, q].tolist() if v >= 0]
            for m in range(M):
                for k in range(K):
                    o = 1 / (1 + math.exp(-query[q, 0, t, m, k]))
                    p = o * (len(nodes) - 1)
                    powers = [math.exp(x) for x in query[q, 1, t, m]]
                    a = powers[k] / sum(powers)
                    for i, v in enumerate(nodes):
                        out[q, t, m] += a * g(p, i) * values[v, t, m]
    return out


def rbf(gamma, epsilon):
    return lambda a, b: math.exp(-((a - b) ** 2) / gamma) if abs(a - b) < epsilon else 0.0


@pytest.mark.parametrize(
    ("kernel", "g"),
    [
        (Kernel(normalize=False), rbf(4.0, 4.0)),
        (Kernel(gamma=1.0, epsilon=2.5, normalize=False), rbf(1.0, 2.5)),
        (Kernel(gamma=64.0, epsilon=30.0, normalize=False), rbf(64.0, 30.0)),
        (Kernel("bilinear", normalize=False), lambda a, b: max(0.0, 1 - abs(a - b))),
    ],
)
def test_equals_the_equation(kernel, g, attention_case):
    values, sequences, query = attention_case(N=9, T=2, M=2, K=3, L=7, D=4)
    out = deformable_attention(values, sequences, query, kernel)
    torch.testing.assert_close(out, written_out(values, sequences, query, g))


def test_normalized_kernel_of_equal_values_gives_the_value(attention_case):
    _, sequences, query = attention_case(N=9, T=2, M=2, K=3, L=7, D=4)
    values = torch.full((9, 2, 2, 4), 5.0, dtype=torch.float64)
    out = deformable_attention(values, sequences, query, Kernel(normalize=True))
    torch.testing.assert_close(out, torch.full_like(out, 5.0))


def test_offsets_zero_and_one_read_the_ends():
    sequences = torch.tensor([[[2, 0, 1, -1]]], dtype=torch.int32)
    values = torch.eye(3, dtype=torch.float64).view(3, 1, 1, 3)
    share = torch.tensor([[-math.inf, math.inf], [math.log(0.2), math.log(0.8)]])
    query = share.double().view(1, 2, 1, 1, 2)
    out = deformable_attention(values, sequences, query, Kernel("bilinear", normalize=False))
    assert out.flatten().tolist() == pytest.approx([0.0, 0.8, 0.2])


def test_position_weights_are_the_gradient_of_the_output(attention_case):
    """w_i is the weight of the value at position i in the output."""
    values, sequences, query = attention_case(N=9, T=2, M=2, K=3, L=7, D=1)
    weights = position_weights(sequences, query, Kernel(normalize=False))
    for t in range(2):
        for q in range(9):
            for i, v in enumerate(sequences[t, q].tolist()):
                one = torch.zeros_like(values)
                if v >= 0:
                    one[v] = 1.0
                out = deformable_attention(one, sequences, query, Kernel(normalize=False))
                torch.testing.assert_close(weights[q, t, :, i], out[q, t, :, 0])


def test_lengths():
    sequences = torch.tensor([[[0, 1, -1], [1, -1, -1], [2, 0, 1]]], dtype=torch.int32)
    assert sequence_lengths(sequences).tolist() == [[2, 1, 3]]


@pytest.mark.parametrize("wrong", [{"gamma": 0.01}, {"epsilon": 0.5}, {"interpolation": "cubic"}])
def test_wrong_arguments_of_the_kernel_are_reported(wrong):
    with pytest.raises(ValueError, match=str(next(iter(wrong.values())))):
        Kernel(**wrong)
