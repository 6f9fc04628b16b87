"""Tasks: loss and metric in training, and a single step."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from dgt.config import Config, TrainConfig
from dgt.evaluate import Metric
from dgt.models import build
from dgt.runs.folder import RunFolder
from dgt.training.batching import Whole
from dgt.training.loop import fit
from dgt.training.multilabel import MultiLabel
from dgt.training.regression import Regression
from dgt.training.steps import step
from dgt.training.task import Classification, Task
from tests.small import block_graph
from tests.training.toy import CLASSES, F, N, make_problem, net


@pytest.fixture(scope="module")
def problem() -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor]:
    return make_problem()


@pytest.mark.parametrize("metric", ["balanced-accuracy", "macro-f1", "log-loss"])
def test_the_metric_of_the_task_selects_the_epoch(problem, tmp_path: Path, metric: str):
    inputs, y, train_mask, val_mask = problem
    model, task = net(), Classification(CLASSES, metric)
    config = TrainConfig(lr=0.05, epochs=60, patience=60)
    folder = RunFolder(tmp_path)
    history = fit(model, Whole(inputs), task, y, train_mask, val_mask, config, folder=folder)
    name = f"val_{metric}"
    assert set(history.epochs[0]) == {
        "epoch", "train_loss", f"train_{metric}", "val_loss", name
    }  # fmt: skip
    sign = -1 if metric == "log-loss" else 1
    best = max(history.epochs, key=lambda row: (sign * row[name], -row["val_loss"]))
    assert history.best_epoch == best["epoch"]
    logits = model(**inputs)[val_mask]
    predictions, labels = logits.argmax(1), y[val_mask]
    if metric == "log-loss":
        for row in history.epochs:
            assert row[name] == pytest.approx(row["val_loss"], rel=1e-5)
    else:  # from the counts of each class
        scores = []
        for c in range(CLASSES):
            right = int(((predictions == c) & (labels == c)).sum())
            found, there = int((predictions == c).sum()), int((labels == c).sum())
            scores.append(2 * right / (found + there) if metric == "macro-f1" else right / there)
        assert best[name] == pytest.approx(sum(scores) / CLASSES)


def test_a_custom_task_needs_no_change_of_the_loop(problem):
    """Least squares with weight decay against the closed form of ridge regression."""
    inputs, _, train_mask, val_mask = problem
    target = inputs["x"] @ torch.linspace(-1, 1, F) + 0.1 * torch.arange(N) / N

    class Regression:
        out_channels, metric = 1, "r2"
        metrics = {"r2": Metric(lambda scores, y: 0.0)}  # noqa: RUF012

        def loss(self, logits: Tensor, y: Tensor) -> Tensor:
            return ((logits.squeeze(1) - y) ** 2).sum()

        def scores(self, logits: Tensor) -> Tensor:
            return logits

        def predict(self, logits: Tensor) -> Tensor:
            return logits.squeeze(1)

        def measure(self, logits, y, names=None) -> dict[str, float]:
            error = ((logits.squeeze(1) - y) ** 2).mean()
            return {"r2": 1 - float(error / y.var(correction=0))}

    model = nn.Module()
    model.weight = nn.Parameter(torch.zeros(F, 1))
    model.forward = lambda x, nodes=None: (x if nodes is None else x[nodes]) @ model.weight
    config = TrainConfig(lr=0.02, weight_decay=0.02, epochs=1500, patience=1500)
    history = fit(model, Whole(inputs), Regression(), target, train_mask, val_mask, config)
    x, y = inputs["x"][train_mask], target[train_mask]
    ridge = torch.linalg.solve(x.T @ x + 0.01 * len(x) * torch.eye(F), x.T @ y)
    error = ((x @ ridge - y) ** 2).mean().item()
    assert history.epochs[-1]["train_loss"] == pytest.approx(error, rel=1e-3)
    assert history.epochs[-1]["train_r2"] == pytest.approx(
        1 - error / y.var(correction=0).item(), abs=1e-4
    )
    assert history.epochs[history.best_epoch - 1]["val_r2"] > 0.9


def test_a_step_runs_on_the_meta_device():
    data = block_graph()
    config = Config.of("dgt").replace(hidden_channels=16, length=8, encoding="none")
    model = build(config, 12, 3, 0).to("meta").train()
    sequences = torch.zeros(3, 90, 8, dtype=torch.int32, device="meta")
    inputs = {"x": data.x.to("meta"), "sequences": sequences, "encoding": None}
    nodes = torch.arange(40, device="meta")
    loss, logits = step(
        model,
        Whole(inputs),
        Classification(3),
        nodes,
        torch.zeros(90, dtype=torch.int64, device="meta"),
    )
    assert loss.shape == ()
    assert logits.shape == (40, 3)
    for tensor in (loss, logits, *(weight.grad for weight in model.parameters())):
        assert tensor is not None
        assert tensor.device.type == "meta"


@pytest.mark.parametrize(
    "task", [Classification(3), MultiLabel(2), Regression(mean=5.0, scale=2.0)]
)
def test_no_other_constant_logits_have_a_smaller_loss(task: Task):
    torch.manual_seed(0)
    if task.name == "regression":
        y = torch.randn(4000)
        y = 5 + 2 * (y - y.mean()) / y.std()
    elif task.name == "multilabel":
        y = (torch.rand(4000, 2) < torch.tensor([0.02, 0.6])).long()
    else:
        y = torch.multinomial(torch.tensor([0.9, 0.02, 0.08]), 4000, replacement=True)
    start = task.constant(y)
    assert start.shape == (task.out_channels,)

    def loss(logits: Tensor) -> float:
        return task.loss(logits.expand(len(y), -1), y).item() / len(y)

    for channel in range(task.out_channels):
        for change in (-0.3, 0.3):
            other = start.clone()
            other[channel] += change
            assert loss(start) < loss(other)


def test_class_weights_count_in_the_constant_logits():
    y = torch.tensor([0] * 99 + [1] * 9)
    task = Classification(2, class_weights=torch.tensor([0.1, 1.0]))
    assert task.constant(y).tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_a_class_without_nodes_stays_possible():
    assert Classification(3).constant(torch.tensor([0, 1, 1])).isfinite().all()
