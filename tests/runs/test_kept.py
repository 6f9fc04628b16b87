"""The weights of a few epochs are kept, whether or not the run is interrupted."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from dgt import InputError, NodeClassifier
from dgt.runs.kept import FOLDER, find_kept, kept_epochs, read_kept
from dgt.training import loop
from tests.small import QUICK, block_graph


@pytest.mark.parametrize("count", [1, 2, 3, 8, 16])
def test_epochs_are_evenly_spaced_and_at_most_count(count: int):
    for last in range(200):
        epochs = list(kept_epochs(count, last))
        assert epochs[0] == 0
        assert len(epochs) <= count
        assert len({b - a for a, b in pairwise(epochs)}) <= 1
        # What is kept later was kept before, so nothing has to be trained again.
        assert set(epochs) - {last} <= set(kept_epochs(count, max(last - 1, 0)))
        if last >= count:
            assert 2 * len(epochs) > count  # no coarser than needed


def settings(**more: object) -> dict[str, object]:
    own = {"model": "dgt", "epochs": 21, "patience": 21, "keep_checkpoints": 6}
    return QUICK | own | more


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("kept") / "run"
    NodeClassifier(**settings()).fit(block_graph(), out=out)
    return out


def test_the_kept_weights_are_those_of_a_run_of_that_many_epochs(run: Path):
    assert list(find_kept(run)) == [0, 4, 8, 12, 16, 20]
    for epoch in (4, 12):
        weights = read_kept(find_kept(run)[epoch])
        folder = run.parent / f"short-{epoch}"
        NodeClassifier(**settings(epochs=epoch, keep_checkpoints=100)).fit(
            block_graph(), out=folder
        )
        last = read_kept(find_kept(folder)[epoch])
        assert weights.keys() == last.keys()
        assert all(torch.equal(weights[name], last[name]) for name in weights)


def test_epoch_0_holds_the_initial_weights(run: Path):
    untrained = NodeClassifier(**settings(epochs=1, lr=1e-30)).fit(block_graph())
    weights = read_kept(find_kept(run)[0])
    for name, value in untrained.model_.state_dict().items():
        assert torch.allclose(weights[name], value, atol=1e-6), name


def test_they_do_not_change_the_result(run: Path, tmp_path: Path):
    NodeClassifier(**settings(keep_checkpoints=0)).fit(block_graph(), out=tmp_path / "run")
    assert not (tmp_path / "run" / FOLDER).exists()
    for name in ("model.safetensors", "metrics.jsonl", "predictions.parquet"):
        assert (tmp_path / "run" / name).read_bytes() == (run / name).read_bytes()


@pytest.mark.parametrize("stop", [3, 7, 15, 20])
def test_an_interrupted_run_keeps_the_same_epochs(run: Path, tmp_path: Path, monkeypatch, stop):
    out = tmp_path / "run"
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    validate, calls = loop._validate, 0

    def interrupted(*arguments):
        nonlocal calls
        calls += 1
        if calls == stop:
            raise KeyboardInterrupt
        return validate(*arguments)

    monkeypatch.setattr(loop, "_validate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        NodeClassifier(**settings()).fit(block_graph(), out=out)
    monkeypatch.setattr(loop, "_validate", validate)
    NodeClassifier(**settings()).fit(block_graph(), out=out, resume=True)
    before, after = find_kept(run), find_kept(out)
    assert before.keys() == after.keys()
    for epoch in before:
        assert before[epoch].read_bytes() == after[epoch].read_bytes()


def test_overwriting_a_run_removes_them_but_no_other_file(tmp_path: Path):
    out = tmp_path / "run"
    NodeClassifier(**settings()).fit(block_graph(), out=out)
    (out / FOLDER / "notes.txt").write_text("mine")
    NodeClassifier(**settings(keep_checkpoints=0)).fit(block_graph(), out=out, overwrite=True)
    assert [path.name for path in (out / FOLDER).iterdir()] == ["notes.txt"]
    (out / FOLDER / "notes.txt").unlink()
    NodeClassifier(**settings(keep_checkpoints=0)).fit(block_graph(), out=out, overwrite=True)
    assert not (out / FOLDER).exists()


def test_damage_is_found(tmp_path: Path):
    out = tmp_path / "run"
    NodeClassifier(**settings(epochs=1)).fit(block_graph(), out=out)
    path = find_kept(out)[1]
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read_kept(path)


@pytest.mark.parametrize("value", [-1, 1001])
def test_bad_counts_are_refused(value: int):
    with pytest.raises(InputError, match="keep_checkpoints"):
        NodeClassifier(keep_checkpoints=value)
