"""Ensembles: several networks that predict together."""

import shutil
from pathlib import Path

import pytest
import torch

from dgt import NodeClassifier, NodeRegressor
from dgt.config import Config
from dgt.errors import InputError
from dgt.explain import key_weights
from dgt.nn.ensemble import Ensemble
from dgt.runs.members import MEMBERS
from dgt.training import loop
from dgt.training.members import member_seeds
from tests.small import QUICK, block_graph

MEMBER_COUNT = 3


def test_seeds_of_members_are_seeds_of_runs() -> None:
    config = Config.of("dgt-plus").replace(members=3, seed=2**32 - 1)
    assert [config.replace(seed=s).train.seed for s in member_seeds(config.train)] == [
        *(2**32 - 1, 1_000_002, 2_000_005)
    ]


def seeds() -> list[int]:
    return member_seeds(Config.of("dgt-plus").replace(members=MEMBER_COUNT).train)


@pytest.fixture(scope="module")
def ensemble() -> NodeClassifier:
    return NodeClassifier(**QUICK, members=MEMBER_COUNT, split=0).fit(block_graph())


@pytest.fixture(scope="module")
def singles() -> list[NodeClassifier]:
    """The same networks, trained by themselves."""
    return [NodeClassifier(**QUICK, seed=s, split=0).fit(block_graph()) for s in seeds()]


def test_members_are_the_networks_of_runs_with_other_seeds(
    ensemble: NodeClassifier, singles: list[NodeClassifier]
) -> None:
    assert len(set(seeds())) == MEMBER_COUNT
    assert seeds()[0] == 0
    assert isinstance(ensemble.model_, Ensemble)
    for member, single in zip(ensemble.model_.members, singles, strict=True):
        own, other = member.state_dict(), single.model_.state_dict()
        assert own.keys() == other.keys()
        assert all(torch.equal(own[name], other[name]) for name in own)
    logits = torch.stack([single.inspect().logits for single in singles])
    assert torch.equal(ensemble.inspect().logits, logits.mean(dim=0))
    assert not torch.equal(logits[0], logits[1])


def test_metrics_and_history_of_an_ensemble(
    ensemble: NodeClassifier, singles: list[NodeClassifier]
) -> None:
    epochs = [len(single.history_) for single in singles]
    assert ensemble.metrics_["epochs"] == sum(epochs)
    assert ensemble.metrics_["best_epoch"] == singles[0].metrics_["best_epoch"]
    assert [row["member"] for row in ensemble.history_] == [
        number for number, count in enumerate(epochs, start=1) for _ in range(count)
    ]
    correct = (ensemble.predict() == block_graph().y)[ensemble.inspect().data.test_mask]
    assert ensemble.metrics_["test_accuracy"] == pytest.approx(float(correct.double().mean()))
    parameters = [single.metrics_["parameters"] for single in singles]
    assert ensemble.metrics_["parameters"] == sum(parameters)
    assert ensemble.multiply_adds() == sum(single.multiply_adds() for single in singles)


def test_a_look_inside_takes_all_members(
    ensemble: NodeClassifier, singles: list[NodeClassifier]
) -> None:
    nodes = torch.tensor([3, 7])
    inside = ensemble.inspect()
    expected = torch.zeros(2, inside.data.num_nodes, dtype=torch.float64)
    for single in singles:
        of_one = single.inspect()
        heads = of_one.model.attention(**of_one.inputs, nodes=nodes)
        expected += key_weights(heads, inside.data.num_nodes, nodes) / MEMBER_COUNT
    assert torch.allclose(inside.weights(nodes), expected, atol=1e-12)
    assert float(inside.weights(nodes).sum()) == pytest.approx(2)
    side_by_side = torch.cat([single.inspect().representations() for single in singles], dim=1)
    assert torch.equal(inside.representations(), side_by_side)
    keys = ensemble.explain(3, top=5).keys
    assert keys[0].weight == pytest.approx(float(expected[0].max()))


def test_a_saved_ensemble_predicts_the_same(ensemble: NodeClassifier, tmp_path: Path) -> None:
    ensemble.save(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model")
    assert torch.equal(loaded.predict_proba(block_graph()), ensemble.predict_proba())


def test_the_weights_of_a_single_network_are_refused(tmp_path: Path) -> None:
    NodeClassifier(**QUICK).fit(block_graph(), out=tmp_path / "run")
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("members = 1", "members = 2"))
    with pytest.raises(InputError, match="not the weights of the model"):
        NodeClassifier.load(tmp_path / "run")


@pytest.mark.parametrize("killed_in", [1, 2, 3])
def test_a_resumed_ensemble_equals_an_uninterrupted_one(
    killed_in: int, ensemble: NodeClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    real, calls = loop._validate, []

    def validate(*arguments: object) -> tuple[float, float]:
        calls.append(arguments)
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        return real(*arguments)

    lengths = [
        sum(row["member"] == number for row in ensemble.history_)
        for number in range(1, MEMBER_COUNT + 1)
    ]
    stop_at = sum(lengths[: killed_in - 1]) + 12
    settings = {**QUICK, "members": MEMBER_COUNT, "split": 0}
    with monkeypatch.context() as patch:
        patch.setattr(loop, "_validate", validate)
        with pytest.raises(KeyboardInterrupt):
            NodeClassifier(**settings).fit(block_graph(), out=tmp_path / "run")
    resumed = NodeClassifier(**settings).fit(block_graph(), out=tmp_path / "run", resume=True)
    assert torch.equal(resumed.inspect().logits, ensemble.inspect().logits)
    assert resumed.metrics_["epochs"] == ensemble.metrics_["epochs"]
    left = sorted(path.name for path in (tmp_path / "run" / MEMBERS).rglob("*") if path.is_file())
    assert left == ["metrics.jsonl"] * (MEMBER_COUNT - 1)
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_overwriting_removes_the_files_of_members_only(tmp_path: Path) -> None:
    run = tmp_path / "run"
    NodeClassifier(**QUICK, members=2).fit(block_graph(), out=run)
    (run / MEMBERS / "mine.txt").write_text("mine")
    assert (run / MEMBERS / "02" / "metrics.jsonl").is_file()
    NodeClassifier(**QUICK).fit(block_graph(), out=run, overwrite=True)
    assert [path.name for path in (run / MEMBERS).iterdir()] == ["mine.txt"]


def test_numbers_are_averaged() -> None:
    data = block_graph()
    data.y = data.x[:, 0].clone()
    settings = {**QUICK, "split": 0}
    both = NodeRegressor(**settings, members=2).fit(data)
    each = [NodeRegressor(**settings, seed=seed).fit(data).predict() for seed in seeds()[:2]]
    assert torch.allclose(both.predict(), (each[0] + each[1]) / 2, atol=1e-6)


def test_what_needs_one_network_is_refused() -> None:
    with pytest.raises(InputError, match="keep_checkpoints: not supported with several members"):
        NodeClassifier(members=2, keep_checkpoints=3)
    with pytest.raises(InputError, match="members: got 0"):
        NodeClassifier(members=0)


def test_finished_networks_are_kept_when_training_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ensemble: NodeClassifier
) -> None:
    """Even if they took less time than passes between two checkpoints."""
    run = tmp_path / "run"
    settings = interrupted(run, monkeypatch)
    assert (run / MEMBERS / "02" / "checkpoint.safetensors").is_file()
    real, again = loop._epoch, []

    def counted(model: torch.nn.Module, *arguments: object) -> tuple[float, float]:
        again.append(id(model))
        return real(model, *arguments)

    monkeypatch.setattr(loop, "_epoch", counted)
    resumed = NodeClassifier(**settings).fit(block_graph(), out=run, resume=True)
    assert len(set(again)) == 1
    assert torch.equal(resumed.inspect().logits, ensemble.inspect().logits)


def interrupted(run: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    """Interrupts the training of the third network; returns the settings."""
    settings = {**QUICK, "members": MEMBER_COUNT, "split": 0}
    real, trained = loop._epoch, []

    def epoch(model: torch.nn.Module, *arguments: object) -> tuple[float, float]:
        trained.append(id(model))
        if len(set(trained)) == 3:
            raise KeyboardInterrupt
        return real(model, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "_epoch", epoch)
        with pytest.raises(KeyboardInterrupt):
            NodeClassifier(**settings).fit(block_graph(), out=run)
    return settings


def test_the_checkpoint_of_another_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    settings = interrupted(run, monkeypatch)
    (run / "checkpoint.safetensors").replace(run / MEMBERS / "02" / "checkpoint.safetensors")
    with pytest.raises(InputError, match="cannot resume"):
        NodeClassifier(**settings).fit(block_graph(), out=run, resume=True)


@pytest.mark.parametrize("name", [MEMBERS, f"{MEMBERS}/02"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_links_and_files_in_place_of_members_are_refused(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    settings = interrupted(run, monkeypatch)
    shutil.rmtree(run / name)
    (outside / "02").mkdir(parents=True)
    for place in (outside, outside / "02"):
        (place / "metrics.jsonl").write_text("mine")
    if kind == "file":
        (run / name).write_text("mine")
    else:
        (run / name).symlink_to(outside if name == MEMBERS else outside / "02")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for how in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(InputError, match=f"{name}: expected a folder, not a link or a file"):
            NodeClassifier(**settings).fit(block_graph(), out=run, **how)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    if name == MEMBERS:  # a single network does not touch them
        NodeClassifier(**QUICK).fit(block_graph(), out=run, overwrite=True)
        assert (outside / "02" / "metrics.jsonl").read_text() == "mine"


def test_a_link_to_an_empty_folder_stays(tmp_path: Path) -> None:
    run = tmp_path / "run"
    NodeClassifier(**QUICK).fit(block_graph(), out=run)
    (tmp_path / "empty").mkdir()
    (run / MEMBERS).symlink_to(tmp_path / "empty")
    NodeClassifier(**QUICK).fit(block_graph(), out=run, overwrite=True)
    assert (run / MEMBERS).is_symlink()
    assert (tmp_path / "empty").is_dir()
