"""The closeness of nodes, and sequences with it."""

import numpy as np
import pytest
import torch

from dgt.config import SequenceConfig
from dgt.data.files import normalize
from dgt.errors import InputError
from dgt.sequences.closeness import of_cosines, of_shares
from dgt.sequences.make import make_scored_sequences, make_sequences
from tests.small import block_graph

CRITERIA = ("alike", "neighbors", "ppr", "similarity")


def test_weights_at_the_start_are_shares_and_powers_of_similarity():
    shares = np.array([[0.5, 0.25, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(np.exp(of_shares(shares)), shares, atol=1e-12)
    cosines = np.array([[1.0, 0.95, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(np.exp(of_cosines(cosines)), np.exp([[0, -1, -20]]), rtol=1e-5)


@pytest.mark.parametrize("cache", [False, True])
def test_sequences_are_those_without_closeness(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("DGT_CACHE", str(tmp_path))
    data, settings = normalize(block_graph()), SequenceConfig(length=6)
    for _ in range(1 + cache):
        sequences, closeness = make_scored_sequences(data, CRITERIA, settings, cache=cache)
        assert torch.equal(sequences, make_sequences(data, CRITERIA, settings))
        assert (closeness[sequences < 0] == 0).all()
        assert (closeness[1] == 0).all()  # neighbors have no order of closeness
        falling = closeness[[0, 2, 3], :, 1:].diff(dim=2) <= 0
        assert falling[sequences[[0, 2, 3], :, 2:] >= 0].all()
    x = torch.nn.functional.normalize(data.x, dim=1)
    cosines = (x[:, None] * x[sequences[3].long()]).sum(2)
    torch.testing.assert_close(closeness[3], 20 * (cosines - 1), atol=1e-3, rtol=0)


def test_criteria_of_the_user_have_no_closeness():
    def backwards(data, length):
        return torch.stack([torch.arange(90), torch.arange(89, -1, -1)], dim=1)

    sequences, closeness = make_scored_sequences(
        normalize(block_graph()), [backwards], SequenceConfig(length=2)
    )
    assert sequences[0, 0].tolist() == [0, 89]
    assert (closeness == 0).all()


def test_spacing_by_score_is_refused():
    with pytest.raises(InputError, match="spacing: got 'score'"):
        make_scored_sequences(block_graph(), CRITERIA, SequenceConfig(spacing="score"))
