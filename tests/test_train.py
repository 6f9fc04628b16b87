"""The training loop, on a model of its own: the loop knows none by name."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from dgt import train
from dgt.config import TrainConfig
from dgt.errors import InputError
from dgt.steps import Whole
from dgt.train import History, fit

N, F, CLASSES = 60, 8, 3


@pytest.fixture(autouse=True)
def _one_thread():
    """Threads cost more than they gain on tensors this small, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Net(nn.Module):
    """Dropout, so that random numbers matter, and a batch norm, so that buffers do."""

    def __init__(self, stop_after: int | None = None) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(F, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, CLASSES)
        )
        self.stop_after = stop_after

    def forward(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
        if self.stop_after is not None and self.training:
            if self.stop_after == 0:
                raise KeyboardInterrupt
            self.stop_after -= 1
        return self.layers(x if nodes is None else x[nodes])


class Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(F, CLASSES))

    def forward(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
        return (x if nodes is None else x[nodes]) @ self.weight


def net(stop_after: int | None = None) -> Net:
    torch.manual_seed(3)
    return Net(stop_after)


@pytest.fixture(scope="module")
def problem() -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor]:
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.integers(0, CLASSES, N))
    centres = rng.normal(size=(CLASSES, F))
    x = torch.from_numpy(centres[y] + rng.normal(scale=1.0, size=(N, F))).float()
    part = torch.arange(N) % 3
    return {"x": x}, y, part == 0, part == 1


def same(a: nn.Module, b: nn.Module) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(p, q) for p, q in pairs)


def test_a_linear_model_reaches_the_optimum_of_logistic_regression(problem):
    inputs, y, train_mask, val_mask = problem
    model = Linear()
    config = TrainConfig(lr=0.01, weight_decay=0.1, epochs=1000, patience=1000)
    history = fit(model, Whole(inputs), y, train_mask, val_mask, config)
    x, target = inputs["x"][train_mask].numpy(), y[train_mask].numpy()
    # scikit-learn minimises C * (sum of losses) + |w|^2 / 2, we (mean loss) + 0.1 * |w|^2 / 2
    reference = LogisticRegression(C=1 / (0.1 * len(x)), fit_intercept=False).fit(x, target)
    log_probabilities = reference.predict_log_proba(x)
    optimum = -log_probabilities[np.arange(len(x)), target].mean()
    assert history.epochs[-1]["train_loss"] == pytest.approx(optimum, rel=1e-3)


def test_rows_best_epoch_and_weights_agree(problem, tmp_path: Path):
    inputs, y, train_mask, val_mask = problem
    model = net()
    config = TrainConfig(lr=0.02, epochs=60, patience=60)
    history = fit(model, Whole(inputs), y, train_mask, val_mask, config, out=tmp_path)

    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == history.epochs
    assert [row["epoch"] for row in history.epochs] == list(range(1, 61))
    assert set(history.epochs[0]) == {
        "epoch", "train_loss", "train_accuracy", "val_loss", "val_accuracy"
    }  # fmt: skip
    best = max(history.epochs, key=lambda row: (row["val_accuracy"], -row["val_loss"]))
    assert history.best_epoch == best["epoch"]
    # the weights that are left are those of the best epoch
    logits = model(**inputs).double()
    right = logits.argmax(1) == y
    assert right[val_mask].double().mean().item() == best["val_accuracy"]
    loss = nn.functional.cross_entropy(logits[val_mask], y[val_mask])
    assert loss.item() == pytest.approx(best["val_loss"], rel=1e-5)


def test_the_average_of_the_weights_is_validated_and_kept(problem):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(lr=0.05, epochs=30, patience=30, average=0.5)
    weights = []

    class Watched(Linear):
        def forward(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
            if self.training:
                weights.append(self.weight.detach().clone())
            return super().forward(x, nodes)

    model = Watched()
    history = fit(model, Whole(inputs), y, train_mask, val_mask, config)
    average = weights[0]
    for epoch, weight in enumerate(weights[1:], start=1):
        kept = min(0.5, epoch / (epoch + 10))
        average = average * kept + weight * (1 - kept)
        loss = nn.functional.cross_entropy((inputs["x"] @ average)[val_mask], y[val_mask])
        assert loss.item() == pytest.approx(history.epochs[epoch - 1]["val_loss"], rel=1e-5)


def test_parts_of_the_model_may_have_their_own_weight_decay(problem):
    inputs, y, train_mask, val_mask = problem

    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features, self.encoding, self.head = Linear(), Linear(), Linear()
            self.block = nn.ModuleDict({"query": Linear()})

        def forward(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
            parts = (self.features, self.encoding, self.head, self.block["query"])
            return sum(part(x, nodes) for part in parts)

    model = Parts()
    config = TrainConfig(
        lr=0.01,
        epochs=300,
        patience=300,
        weight_decay=0.01,
        feature_weight_decay=1.0,
        encoding_weight_decay=100.0,
        key_weight_decay=100.0,
    )
    fit(model, Whole(inputs), y, train_mask, val_mask, config)
    query: Any = model.block["query"]
    parts = (model.encoding, query, model.features, model.head)
    sizes = [part.weight.norm().item() for part in parts]
    assert max(sizes[:2]) < 0.1 * sizes[2] < 0.1 * sizes[3]


def test_stops_after_patience_epochs_without_a_better_one(problem):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(lr=0.02, epochs=5000, patience=7)
    history = fit(net(), Whole(inputs), y, train_mask, val_mask, config)
    assert len(history.epochs) == history.best_epoch + 7 < 5000


def test_the_nodes_outside_train_and_val_do_not_matter(problem):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(epochs=10)
    first, second = net(), net()
    fit(first, Whole(inputs), y, train_mask, val_mask, config)
    other = torch.where(train_mask | val_mask, y, -1)
    fit(second, Whole(inputs), other, train_mask, val_mask, config)
    assert same(first, second)


def test_the_seed_decides_and_the_caller_s_random_numbers_stay(problem):
    inputs, y, train_mask, val_mask = problem
    models = [net(), net(), net()]
    for model, seed in zip(models, (0, 0, 1), strict=True):
        torch.manual_seed(99 + len(models))
        before = torch.get_rng_state()
        fit(model, Whole(inputs), y, train_mask, val_mask, TrainConfig(epochs=10, seed=seed))
        assert torch.equal(before, torch.get_rng_state())
    assert same(models[0], models[1])
    assert not same(models[0], models[2])


def test_a_loss_that_is_not_finite_stops_with_a_clear_error(problem):
    inputs, y, train_mask, val_mask = problem
    inputs = {"x": inputs["x"] * 1e20}
    with pytest.raises(InputError, match=r"^epoch 1: the loss .* lr below 1e\+20$"):
        fit(Linear(), Whole(inputs), y, train_mask, val_mask, TrainConfig(lr=1e20))


@pytest.mark.parametrize("stop_after", [1, 7, 24])
@pytest.mark.parametrize("checkpoint_seconds", [0.0, math.inf])
def test_resumed_training_ends_as_if_never_interrupted(
    problem, tmp_path: Path, monkeypatch, stop_after: int, checkpoint_seconds: float
):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(lr=0.02, epochs=40, patience=12, seed=5)

    def run(folder: Path, model: Net, resume: bool) -> History:
        folder.mkdir(exist_ok=True)
        return fit(model, Whole(inputs), y, train_mask, val_mask, config, out=folder, resume=resume)

    whole = net()
    expected = run(tmp_path / "whole", whole, resume=False)
    assert len(expected.epochs) > 24  # so that every interruption comes before the end
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", checkpoint_seconds)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", net(stop_after), resume=True)
    with open(tmp_path / "cut" / "metrics.jsonl", "a") as log:
        log.write('{"epoch": 1')  # as a write that was cut short leaves it
    resumed = net()
    history = run(tmp_path / "cut", resumed, resume=True)
    assert same(whole, resumed)
    assert history.epochs == expected.epochs
    assert history.best_epoch == expected.best_epoch
    logs = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("whole", "cut")]
    assert logs[0] == logs[1]


def test_resume_refuses_another_graph_and_a_damaged_checkpoint(
    problem, tmp_path: Path, monkeypatch
):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(epochs=3)
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", 0.0)
    fit(net(), Whole(inputs), y, train_mask, val_mask, config, out=tmp_path)
    changed = {"x": inputs["x"].clone()}
    changed["x"][0, 0] += 1e-6
    with pytest.raises(InputError, match="not the one that the run was started with"):
        fit(net(), Whole(changed), y, train_mask, val_mask, config, out=tmp_path, resume=True)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"checkpoint\.safetensors: not a checkpoint"):
        fit(net(), Whole(inputs), y, train_mask, val_mask, config, out=tmp_path, resume=True)


def test_progress_off_a_terminal_is_a_line_now_and_then(problem, capsys):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(epochs=250, patience=250)
    fit(net(), Whole(inputs), y, train_mask, val_mask, config, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[0] for line in err.splitlines()] == ["epoch 100", "epoch 200"]
    fit(net(), Whole(inputs), y, train_mask, val_mask, config, progress=False)
    assert capsys.readouterr() == ("", "")
