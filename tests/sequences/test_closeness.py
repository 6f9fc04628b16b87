"""The closeness of nodes, and sequences with it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dgt.config import Config, SequenceConfig
from dgt.data.files import normalize
from dgt.errors import InputError
from dgt.prepare import precompute
from dgt.sequences.closeness import of_cosines, of_shares
from dgt.sequences.make import make_scored_sequences, make_sequences
from tests.small import block_graph

CRITERIA = ("alike", "neighbors", "ppr", "similarity")


def test_weights_at_the_start_are_shares_and_powers_of_similarity():
    shares = np.array([[0.5, 0.25, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(np.exp(of_shares(shares, SequenceConfig())), shares, atol=1e-12)
    cosines = np.array([[1.0, 0.95, 0.0]], dtype=np.float32)
    for sharpness in (20.0, 8.0):
        closeness = of_cosines(cosines, SequenceConfig(sharpness=sharpness))
        np.testing.assert_allclose(closeness, [[0, -sharpness / 20, -sharpness]], rtol=1e-5)


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
    # A cache does not mix up what other settings have written.
    less = replace(settings, sharpness=5.0)
    _, other = make_scored_sequences(data, CRITERIA, less, cache=cache)
    torch.testing.assert_close(other[3], 5 * (cosines - 1), atol=1e-3, rtol=0)
    assert torch.equal(other[2], closeness[2])


def test_large_ones_are_memory_mapped_by_training_and_by_prepare(tmp_path, monkeypatch):
    monkeypatch.setattr("dgt.storage.segments.ROWS", 32)
    data, settings = normalize(block_graph()), SequenceConfig(length=6)
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "small"))
    expected = make_scored_sequences(data, CRITERIA, settings, cache=True)
    monkeypatch.setattr("dgt.sequences.make.MAPPED_BYTES", 4 * 90 * 6 * len(CRITERIA))
    folders = [tmp_path / "trained", tmp_path / "prepared"]
    for folder, first in zip(folders, (True, False), strict=True):
        monkeypatch.setenv("DGT_CACHE", str(folder))
        if not first:
            config = Config.of("dgt-plus").replace(length=6, criteria=CRITERIA)
            assert precompute(data, config)["missing"] == 0
        else:
            make_scored_sequences(data, CRITERIA, settings, cache=True)
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.npy")}
        found = make_scored_sequences(data, CRITERIA, settings, cache=True)
        assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*.npy")}
        for tensor, wanted in zip(found, expected, strict=True):
            assert torch.equal(tensor, wanted)
        for kind in ("scored-sequences", "closeness"):
            assert len(list((folder / kind).glob("*.npy"))) == 1  # beside the segments in folders
    files = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.npy")}
        for folder in folders
    ]
    assert files[0] == files[1]
    monkeypatch.setattr("dgt.sequences.make.MAPPED_BYTES", 4 * 90 * 6 * len(CRITERIA) + 1)
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "smaller"))
    make_scored_sequences(data, CRITERIA, settings, cache=True)
    assert not (tmp_path / "smaller" / "closeness").exists()


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
