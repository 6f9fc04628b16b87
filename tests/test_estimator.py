"""NodeClassifier: fit, predict, score, save and load."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.base import clone
from sklearn.metrics import f1_score
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from dgt import Config, InputError, NodeClassifier, NodeRegressor
from dgt.evaluate import METRICS
from dgt.system.notes import warn_once
from tests.small import QUICK, block_graph


@pytest.fixture(scope="module")
def fitted() -> tuple[Data, NodeClassifier]:
    data = block_graph()
    return data, NodeClassifier(**QUICK).fit(data)


def test_learns_a_plain_graph_and_scores_it(fitted):
    data, classifier = fitted
    assert classifier.score() > 0.7  # chance: 0.33
    # 48/32/20% of each class of 30
    masks = [classifier._data[f"{part}_mask"] for part in ("train", "val", "test")]
    assert [int(mask.sum()) for mask in masks] == [42, 30, 18]
    predictions = classifier.predict()
    for part, mask in zip(("train", "val", "test"), masks, strict=True):
        expected = np.mean(predictions[mask].numpy() == data.y[mask].numpy())
        assert classifier.score(mask=part) == pytest.approx(expected)
        assert classifier.metrics_[f"{part}_accuracy"] == pytest.approx(expected)
    assert classifier.score(mask="all") == np.mean(predictions.numpy() == data.y.numpy())
    mask = torch.arange(90) < 7
    assert classifier.score(mask=mask) == np.mean((predictions == data.y)[:7].numpy())


def test_probabilities_and_predictions_agree(fitted):
    _, classifier = fitted
    probabilities = classifier.predict_proba()
    assert probabilities.shape == (90, 3)
    assert torch.allclose(probabilities.sum(1), torch.ones(90))
    assert torch.equal(probabilities.argmax(1), classifier.predict())


def test_the_training_graph_as_data_gives_the_same_result(fitted):
    data, classifier = fitted
    assert torch.equal(classifier.predict_proba(), classifier.predict_proba(data))
    assert classifier.score() == classifier.score(data)


def test_history_and_metrics(fitted):
    _, classifier = fitted
    metrics = classifier.metrics_
    assert metrics["epochs"] == len(classifier.history_) == 30
    assert metrics["splits"] == "random"
    assert metrics["split"] == metrics["seed"] == 0
    assert metrics["parameters"] == sum(p.numel() for p in classifier.model_.parameters())
    best = classifier.history_[metrics["best_epoch"] - 1]
    assert best["val_accuracy"] == metrics["val_accuracy"]


def test_predictions_have_the_class_numbers_of_the_user():
    data = block_graph()
    data.y = torch.tensor([2, 5, 9])[data.y]
    data.y[::7] = -1
    classifier = NodeClassifier(**QUICK).fit(data)
    assert set(classifier.predict().tolist()) <= {2, 5, 9}
    right = (classifier.predict() == data.y)[data.y >= 0]
    assert classifier.score(mask="all") == pytest.approx(right.double().mean().item())
    # a graph with only some of the classes has the class numbers of the training graph
    part = data.clone()
    part.y = torch.where(data.y == 9, 9, -1)
    nines = (classifier.predict() == 9)[data.y == 9]
    assert classifier.score(part, mask="all") == pytest.approx(nines.double().mean().item())
    part.y[0] = 4
    with pytest.raises(InputError, match="class '4' was not in the training graph"):
        classifier.score(part, mask="all")


def test_a_published_split_is_chosen_by_its_number():
    data = block_graph()
    part = torch.stack([torch.arange(90).roll(s) % 5 % 3 for s in range(4)], dim=1)  # (N, 4)
    data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    with pytest.raises(InputError, match="split: got 4, expected below 4, the number of splits"):
        NodeClassifier(**QUICK, split=4).fit(data)
    classifier = NodeClassifier(**{**QUICK, "epochs": 2}, split=2).fit(data)
    assert classifier.metrics_["splits"] == "published"
    assert classifier.metrics_["split"] == 2
    assert torch.equal(classifier._data.train_mask, data.train_mask[:, 2])
    follows_seed = NodeClassifier(**{**QUICK, "epochs": 2}, seed=3).fit(data)
    assert follows_seed.metrics_["split"] == 3


def test_a_given_split_is_used():
    data = block_graph()
    part = torch.arange(90) % 5
    data.train_mask, data.val_mask, data.test_mask = part < 2, part == 2, part > 2
    classifier = NodeClassifier(**{**QUICK, "epochs": 2}).fit(data)
    assert classifier.metrics_["splits"] == "given"
    assert classifier.metrics_["split"] is None
    assert torch.equal(classifier._data.test_mask, data.test_mask)
    with pytest.raises(InputError, match="split: graph has one split of its own, which has no num"):
        NodeClassifier(**{**QUICK, "epochs": 2}, split=1).fit(data)


def test_saved_and_loaded_it_predicts_the_same_bits(fitted, tmp_path: Path):
    data, classifier = fitted
    classifier.save(tmp_path / "model")
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "config.toml", "model.safetensors",
    ]  # fmt: skip
    state = torch.get_rng_state()
    loaded = NodeClassifier.load(tmp_path / "model")
    assert torch.equal(state, torch.get_rng_state())
    assert loaded.config == classifier.config_
    assert torch.equal(loaded.predict_proba(data), classifier.predict_proba(data))
    with pytest.raises(InputError, match="pass one as data"):
        loaded.predict()
    classifier.save(tmp_path / "model")  # may replace its own files


def test_save_does_not_replace_files_of_other_programs(fitted, tmp_path: Path):
    (tmp_path / "config.toml").write_text("[server]\nport = 80\n")
    with pytest.raises(InputError, match=r"unknown table \[server\]"):
        fitted[1].save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["config.toml"]


def test_load_refuses_incomplete_and_damaged_models(fitted, tmp_path: Path):
    with pytest.raises(InputError, match="no such folder"):
        NodeClassifier.load(tmp_path / "none")
    with pytest.raises(InputError, match=r"has no config\.toml"):
        NodeClassifier.load(tmp_path)
    fitted[1].save(tmp_path)
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    for size in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"model\.safetensors: truncated, or not"):
            NodeClassifier.load(tmp_path)
    save_file({"weight": torch.zeros(2)}, path)
    with pytest.raises(InputError, match="not a model of dgt"):
        NodeClassifier.load(tmp_path)
    save_file({"weight": torch.zeros(2)}, path, {"dgt": '{"format": 1, "dgt_version": "0"}'})
    with pytest.raises(InputError, match="metadata: has no 'in_channels'"):
        NodeClassifier.load(tmp_path)
    save_file({"weight": torch.zeros(2)}, path, {"dgt": '{"format": 99, "dgt_version": "9"}'})
    with pytest.raises(InputError, match="has format 99"):
        NodeClassifier.load(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match="no such file"):
        NodeClassifier.load(tmp_path)
    path.write_bytes(whole)
    config = tmp_path / "config.toml"
    config.write_text(config.read_text().replace("hidden_channels = 16", "hidden_channels = 32"))
    with pytest.raises(InputError, match=r"not the weights of the model in config\.toml"):
        NodeClassifier.load(tmp_path)


def test_a_graph_with_other_features_is_refused(fitted):
    data, classifier = fitted
    narrow = data.clone()
    narrow.x = data.x[:, :5]
    with pytest.raises(InputError, match="has 5 features, but the model was trained with 12"):
        classifier.predict(narrow)

    named = data.clone()
    named.feature_names = [f"f{i}" for i in range(12)]
    classifier = NodeClassifier(**{**QUICK, "epochs": 1}).fit(named)
    classifier.predict(data)  # no names to compare
    swapped = data.clone()
    swapped.feature_names = ["f0", "f2", "f1", *named.feature_names[3:]]
    with pytest.raises(InputError, match=r"feature 1 is 'f2', .* trained with 'f1'"):
        classifier.predict(swapped)


def test_anchors_are_found_by_id(fitted):
    data, _ = fitted
    data = data.clone()
    data.node_ids = [f"n{i}" for i in range(90)]
    classifier = NodeClassifier(**{**QUICK, "epochs": 1}, model="dgt", anchors=20).fit(data)
    degrees = torch.bincount(data.edge_index.flatten(), minlength=90)
    by_degree = sorted(range(90), key=lambda node: (-int(degrees[node]), node))
    assert classifier.facts_.anchors == [f"n{node}" for node in by_degree[:20]]

    larger = grown(data)
    found = classifier.facts_.find_anchors(larger)
    assert found.tolist() == [99 - node for node in by_degree[:20]]
    assert classifier.predict_proba(larger).shape == (100, 3)

    kept = torch.arange(89, 29, -1)  # the last 60 nodes, in another order
    edges, _ = subgraph(kept, data.edge_index, relabel_nodes=True, num_nodes=90)
    order = torch.argsort(kept.argsort())  # subgraph orders nodes by their old index
    part = Data(x=data.x[kept], edge_index=order[edges], node_ids=[f"n{i}" for i in kept.tolist()])
    found = classifier.facts_.find_anchors(part)
    expected = [89 - node if node >= 30 else -1 for node in by_degree[:20]]
    assert found.tolist() == expected
    assert -1 in expected
    part.name = "elsewhere"
    with pytest.raises(InputError, match=r"^elsewhere: does not contain .* --encoding none"):
        classifier.predict(part)
    without = NodeClassifier(**{**QUICK, "epochs": 1}, model="dgt", encoding="none").fit(data)
    assert without.predict(part).shape == (60,)


def grown(data: Data) -> Data:
    """Returns the graph with reversed nodes and ten more, each joined to an old one."""
    new = torch.arange(10)
    edges = torch.cat([99 - data.edge_index, torch.stack([new, 99 - new])], dim=1)
    x = torch.cat([torch.randn(10, data.x.size(1)), data.x.flip(0)])
    ids = [f"new{i}" for i in range(10)] + data.node_ids[::-1]
    return Data(x=x, edge_index=edges, node_ids=ids)


def test_ids_read_as_text_or_as_numbers_are_the_same_ids(fitted):
    data, classifier = fitted
    text = data.clone()
    text.node_ids = [str(i) for i in range(90)]
    assert torch.equal(classifier.predict_proba(text), classifier.predict_proba())


def test_settings_by_name():
    config = NodeClassifier(
        Config.of("dgt").replace(lr=0.5), model="dgt-light", heads=8, katz_beta=1
    ).config
    assert config.train.lr == 0.5
    assert config.model.model == "dgt-light"
    assert config.model.heads == 8
    assert config.encoding.katz_beta == 1.0
    with pytest.raises(InputError, match="unknown setting 'learning_rate'"):
        NodeClassifier(learning_rate=0.1)
    with pytest.raises(InputError, match="unknown setting 'haeds'; did you mean 'heads'"):
        NodeClassifier(haeds=4)


def test_a_setting_that_the_model_does_not_use_is_pointed_out_once(caplog):
    warn_once.cache_clear()
    NodeClassifier(Config.of("gcn").replace(gamma=8.0))  # as that of a run, which has all settings
    NodeClassifier(model="gcn", gamma=4.0, length=8)
    assert not caplog.messages
    for _ in range(2):
        NodeClassifier(model="gcn", gamma=8)
    (message,) = caplog.messages
    assert message.startswith("gamma: got 8.0, which model gcn does not use, expected one of")
    assert message.endswith("models dgt-light, dgt, dgt-plus")


def test_scikit_learn_clones_it():
    def nearest(data, length):
        raise AssertionError

    config = Config.of("dgt").replace(lr=0.5)
    for given in (
        NodeClassifier(),
        NodeClassifier(config, heads=8, criteria=["bfs", nearest], encoding="none"),
        NodeRegressor(epochs=3),
    ):
        copy = clone(given)
        assert type(copy) is type(given)
        assert copy.get_params() == given.get_params()
        assert (copy.config, copy.config.explicit) == (given.config, given.config.explicit)
        assert repr(copy) == repr(given)
        assert copy.set_params() is copy
        assert copy.config == given.config


def test_parameters_of_a_fitted_estimator(fitted):
    data, classifier = fitted
    before = classifier.get_params()
    assert before == {"config": None, **QUICK}
    copy = clone(classifier)
    assert not hasattr(copy, "model_")
    with pytest.raises(InputError, match="not fitted yet"):
        copy.predict(data)
    assert copy.set_params(epochs=2, lr=0.02).config == classifier.config.replace(epochs=2, lr=0.02)
    assert copy.get_params() == before | {"epochs": 2, "lr": 0.02}
    assert "gamma" not in copy.config.explicit  # dgt-plus may still choose it
    with pytest.raises(InputError, match="unknown setting 'learning_rate'"):
        copy.set_params(learning_rate=0.1)
    with pytest.raises(InputError, match="NodeClassifier got settings for regression"):
        copy.set_params(task="regression")
    assert copy.get_params() == before | {"epochs": 2, "lr": 0.02}
    assert copy.fit(data).metrics_["best_epoch"] <= 2
    copy.set_params(epochs=1)
    assert copy.predict().shape == (90,)  # still that of the last fit
    assert classifier.get_params() == before


def test_methods_that_need_a_fitted_model(tmp_path: Path):
    for call in (
        lambda c: c.predict(),
        lambda c: c.score(block_graph()),
        lambda c: c.save(tmp_path / "m"),
    ):
        with pytest.raises(InputError, match="not fitted yet"):
            call(NodeClassifier())
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("classes", "features"), [(2, 5), (6, 7), (7, 12)])
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_results_do_not_depend_on_the_number_of_threads(classes: int, features: int, norm: str):
    data = block_graph(nodes=1200, classes=classes, features=features)
    states, threads = [], torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            classifier = NodeClassifier(**{**QUICK, "epochs": 4}, norm=norm).fit(data)
            states.append(classifier.model_.state_dict() | {"p": classifier.predict_proba()})
    finally:
        torch.set_num_threads(threads)
    different = [name for name in states[0] if not torch.equal(states[0][name], states[1][name])]
    assert different == []


def test_the_metric_is_used_for_selection_scores_and_results(fitted, tmp_path: Path):
    data, _ = fitted
    classifier = NodeClassifier(**QUICK, metric="macro-f1").fit(data, out=tmp_path / "run")
    metrics = classifier.metrics_
    assert metrics["metric"] == "macro-f1"
    for part in ("train", "val", "test"):
        assert set(metrics[part]) == {n for n, m in METRICS.items() if "multiclass" in m.tasks}
        assert metrics[f"{part}_accuracy"] == metrics[part]["accuracy"]
        assert metrics[f"{part}_macro-f1"] == metrics[part]["macro-f1"]
        mask = classifier._data[f"{part}_mask"]
        y, predictions = data.y[mask], classifier.predict()[mask]
        assert metrics[part]["macro-f1"] == pytest.approx(f1_score(y, predictions, average="macro"))
        assert classifier.score(mask=part) == metrics[part]["macro-f1"]
        assert classifier.score(mask=part, metric="accuracy") == metrics[part]["accuracy"]
        probabilities = classifier.predict_proba()[mask].double()
        expected = torch.nn.functional.nll_loss(probabilities.log(), y).item()
        assert metrics[part]["log-loss"] == pytest.approx(expected, rel=1e-4)
    best = max(classifier.history_, key=lambda row: (row["val_macro-f1"], -row["val_loss"]))
    assert best["epoch"] == metrics["best_epoch"]
    assert best["val_macro-f1"] == metrics["val"]["macro-f1"]
    assert json.loads((tmp_path / "run" / "metrics.json").read_text()) == metrics
    loaded = NodeClassifier.load(tmp_path / "run")
    assert loaded.score(data) == classifier.score()
    with pytest.raises(InputError, match="unknown metric 'macro-f2'; did you mean 'macro-f1'"):
        classifier.score(metric="macro-f2")
    with pytest.raises(InputError, match="unknown metric 'acuracy'; did you mean 'accuracy'"):
        NodeClassifier(metric="acuracy")


def test_a_missing_device_is_refused_before_anything_is_written(
    fitted, tmp_path: Path, monkeypatch
):
    data, classifier = fitted
    monkeypatch.setattr("torch.backends.cuda.is_built", lambda: False)
    missing = NodeClassifier(**QUICK, device="cuda:1")
    with pytest.raises(InputError, match=r"^device: cuda:1: this build of torch has no CUDA"):
        missing.fit(data, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    # a model that was trained on a GPU can be loaded on a machine without one
    classifier.save(tmp_path / "model")
    path = tmp_path / "model" / "config.toml"
    path.write_text(path.read_text().replace('device = "auto"', 'device = "cuda"'))
    with pytest.raises(InputError, match=r"^device: cuda: this build of torch has no CUDA"):
        NodeClassifier.load(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model", device="cpu")
    assert loaded.config.train.device == "cpu"
    assert torch.equal(loaded.predict_proba(data), classifier.predict_proba())


def test_the_device_is_in_the_metrics(fitted):
    assert fitted[1].metrics_["device"] == str(next(fitted[1].model_.parameters()).device)
