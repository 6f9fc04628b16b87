"""The training loop on small models of its own, independent of DGT."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from safetensors.torch import save as serialize
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from dgt.config import TrainConfig
from dgt.errors import InputError
from dgt.runs.folder import RunFolder
from dgt.training import loop as train
from dgt.training.batching import Whole
from dgt.training.loop import History, fit
from tests.training.toy import TASK, Linear, Net, make_problem, net


@pytest.fixture(autouse=True)
def _one_thread():
    """Several threads are slower than one on tensors this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def problem() -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor]:
    return make_problem()


def same(a: nn.Module, b: nn.Module) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(p, q) for p, q in pairs)


def test_a_linear_model_reaches_the_optimum_of_logistic_regression(problem):
    inputs, y, train_mask, val_mask = problem
    model = Linear()
    config = TrainConfig(lr=0.01, weight_decay=0.1, epochs=1000, patience=1000)
    history = fit(model, Whole(inputs), TASK, y, train_mask, val_mask, config)
    x, target = inputs["x"][train_mask].numpy(), y[train_mask].numpy()
    # scikit-learn minimizes C * (sum of losses) + |w|^2 / 2, we (mean loss) + 0.1 * |w|^2 / 2
    reference = LogisticRegression(C=1 / (0.1 * len(x)), fit_intercept=False).fit(x, target)
    log_probabilities = reference.predict_log_proba(x)
    optimum = -log_probabilities[np.arange(len(x)), target].mean()
    assert history.epochs[-1]["train_loss"] == pytest.approx(optimum, rel=1e-3)


def test_history_best_epoch_and_weights_agree(problem, tmp_path: Path):
    inputs, y, train_mask, val_mask = problem
    model = net()
    config = TrainConfig(lr=0.02, epochs=60, patience=60)
    history = fit(
        model, Whole(inputs), TASK, y, train_mask, val_mask, config, folder=RunFolder(tmp_path)
    )

    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == history.epochs
    assert [row["epoch"] for row in history.epochs] == list(range(1, 61))
    assert set(history.epochs[0]) == {
        "epoch", "train_loss", "train_accuracy", "val_loss", "val_accuracy"
    }  # fmt: skip
    best = max(history.epochs, key=lambda row: (row["val_accuracy"], -row["val_loss"]))
    assert history.best_epoch == best["epoch"]
    # the model has the weights of the best epoch
    logits = model(**inputs).double()
    right = logits.argmax(1) == y
    assert right[val_mask].double().mean().item() == best["val_accuracy"]
    loss = nn.functional.cross_entropy(logits[val_mask], y[val_mask])
    assert loss.item() == pytest.approx(best["val_loss"], rel=1e-5)


class InSteps(Whole):
    """Takes several steps per epoch."""

    def __init__(self, given: dict[str, Any], count: int) -> None:
        super().__init__(given)
        self.count = count

    def batches(self, nodes: Tensor) -> Iterable[Tensor]:
        return nodes.tensor_split(self.count)


@pytest.mark.parametrize("steps", [1, 4])
def test_the_average_of_the_weights_is_validated_and_kept(problem, steps: int):
    """It is taken after each step, and an epoch keeps the same share for any number of them."""
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(lr=0.05, epochs=30, patience=30, average=0.5)
    weights = []

    class Watched(Linear):
        def forward(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
            if self.training:
                weights.append(self.weight.detach().clone())
            return super().forward(x, nodes)

    model = Watched()
    history = fit(model, InSteps(inputs, steps), TASK, y, train_mask, val_mask, config)
    average = weights[0]
    for step, weight in enumerate(weights[1:], start=1):
        kept = min(0.5 ** (1 / steps), step / (step + 10))
        average = average * kept + weight * (1 - kept)
        if step % steps == 0:
            loss = nn.functional.cross_entropy((inputs["x"] @ average)[val_mask], y[val_mask])
            found = history.epochs[step // steps - 1]["val_loss"]
            assert loss.item() == pytest.approx(found, rel=1e-5)


def test_parts_of_the_model_may_have_their_own_weight_decay(problem):
    inputs, y, train_mask, val_mask = problem

    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features, self.encoding, self.head = Linear(), Linear(), Linear()
            self.block = nn.ModuleDict({"query": Linear()})

        def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
            return {
                "weight_decay": list(self.head.parameters()),
                "feature_weight_decay": list(self.features.parameters()),
                "encoding_weight_decay": list(self.encoding.parameters()),
                "key_weight_decay": list(self.block.parameters()),
            }

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
    fit(model, Whole(inputs), TASK, y, train_mask, val_mask, config)
    query: Any = model.block["query"]
    parts = (model.encoding, query, model.features, model.head)
    sizes = [part.weight.norm().item() for part in parts]
    assert max(sizes[:2]) < 0.1 * sizes[2] < 0.1 * sizes[3]


def test_stops_after_patience_epochs_without_improvement(problem):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(lr=0.02, epochs=5000, patience=7)
    history = fit(net(), Whole(inputs), TASK, y, train_mask, val_mask, config)
    assert len(history.epochs) == history.best_epoch + 7 < 5000


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("select_by", ["metric", "loss"])
def test_the_best_epoch_is_that_of_the_metric_or_of_the_loss(
    problem, tmp_path: Path, monkeypatch, select_by: str, resumed: bool
):
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", 0.0)
    inputs, y, train_mask, val_mask = problem
    # Noise in the labels, which training fits in the end.
    noise = torch.randint(0, 3, y.shape, generator=torch.Generator().manual_seed(0))
    y = torch.where(torch.arange(len(y)) % 3 == 0, noise, y)
    config = TrainConfig(lr=0.05, epochs=60, patience=60, select_by=select_by)

    def run(model: Net, resume: bool = False) -> History:
        own = Whole(inputs), TASK, y, train_mask, val_mask, config
        return fit(model, *own, folder=RunFolder(tmp_path), resume=resume)

    if resumed:
        with pytest.raises(KeyboardInterrupt):
            run(net(stop_after=45))
    history = run(net(), resume=resumed)
    rows = history.epochs
    by_metric = max(rows, key=lambda row: (row["val_accuracy"], -row["val_loss"]))["epoch"]
    by_loss = min(rows, key=lambda row: row["val_loss"])["epoch"]
    assert by_metric != by_loss
    assert history.best_epoch == {"metric": by_metric, "loss": by_loss}[select_by]


def test_nodes_outside_train_and_val_do_not_matter(problem):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(epochs=10)
    first, second = net(), net()
    fit(first, Whole(inputs), TASK, y, train_mask, val_mask, config)
    other = torch.where(train_mask | val_mask, y, -1)
    fit(second, Whole(inputs), TASK, other, train_mask, val_mask, config)
    assert same(first, second)


def test_the_result_depends_on_the_seed_and_the_global_random_state_is_kept(problem):
    inputs, y, train_mask, val_mask = problem
    models = [net(), net(), net()]
    for model, seed in zip(models, (0, 0, 1), strict=True):
        torch.manual_seed(99 + len(models))
        before = torch.get_rng_state()
        fit(model, Whole(inputs), TASK, y, train_mask, val_mask, TrainConfig(epochs=10, seed=seed))
        assert torch.equal(before, torch.get_rng_state())
    assert same(models[0], models[1])
    assert not same(models[0], models[2])


def test_a_loss_that_is_not_finite_stops_with_a_clear_error(problem):
    inputs, y, train_mask, val_mask = problem
    inputs = {"x": inputs["x"] * 1e37}
    with pytest.raises(InputError, match=r"^epoch 1: the loss .* lr below 1000$"):
        fit(Linear(), Whole(inputs), TASK, y, train_mask, val_mask, TrainConfig(lr=1000.0))


@pytest.mark.parametrize("stop_after", [1, 7, 24])
@pytest.mark.parametrize("checkpoint_seconds", [0.0, math.inf])
def test_resumed_training_ends_as_if_never_interrupted(
    problem, tmp_path: Path, monkeypatch, stop_after: int, checkpoint_seconds: float
):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(lr=0.02, epochs=40, patience=12, seed=5)

    def run(folder: Path, model: Net, resume: bool) -> History:
        folder.mkdir(exist_ok=True)
        return fit(
            model,
            Whole(inputs),
            TASK,
            y,
            train_mask,
            val_mask,
            config,
            folder=RunFolder(folder),
            resume=resume,
        )

    whole = net()
    expected = run(tmp_path / "whole", whole, resume=False)
    assert len(expected.epochs) > 24  # all interruptions are before the end
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", checkpoint_seconds)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", net(stop_after), resume=True)
    with open(tmp_path / "cut" / "metrics.jsonl", "a") as log:
        log.write('{"epoch": 1')  # a truncated line
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
    fit(net(), Whole(inputs), TASK, y, train_mask, val_mask, config, folder=RunFolder(tmp_path))
    changed = {"x": inputs["x"].clone()}
    changed["x"][0, 0] += 1e-6
    with pytest.raises(InputError, match="not the one that the run was started with"):
        fit(
            net(),
            Whole(changed),
            TASK,
            y,
            train_mask,
            val_mask,
            config,
            folder=RunFolder(tmp_path),
            resume=True,
        )
    path = tmp_path / "checkpoint.safetensors"
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-1000] ^= 4
    other = serialize({"weight": torch.zeros(2)}, {"progress": "7"})
    for content, message in (
        (whole[:-100], "truncated, or not a safetensors file"),
        (bytes(flipped), "damaged: its content does not match its digest"),
        (other, "progress: expected a JSON object, got 7"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"checkpoint\.safetensors: {message}"):
            fit(
                net(),
                Whole(inputs),
                TASK,
                y,
                train_mask,
                val_mask,
                config,
                folder=RunFolder(tmp_path),
                resume=True,
            )


def test_progress_without_a_terminal_is_a_line_per_100_epochs(problem, capsys):
    inputs, y, train_mask, val_mask = problem
    config = TrainConfig(epochs=250, patience=250)
    fit(net(), Whole(inputs), TASK, y, train_mask, val_mask, config, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[0] for line in err.splitlines()] == ["epoch 100", "epoch 200"]
    fit(net(), Whole(inputs), TASK, y, train_mask, val_mask, config, progress=False)
    assert capsys.readouterr() == ("", "")


def test_a_model_must_name_all_its_parameters(problem):
    inputs, y, train_mask, val_mask = problem

    class Forgetful(Net):
        def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
            return {"weight_decay": list(self.layers[0].parameters())}

    with pytest.raises(ValueError, match=r"Forgetful\.parameter_groups leaves out"):
        fit(Forgetful(), Whole(inputs), TASK, y, train_mask, val_mask, TrainConfig())


def test_a_checkpoint_holds_adam_by_the_names_of_the_parameters(problem, tmp_path, monkeypatch):
    inputs, y, train_mask, val_mask = problem
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", 0.0)
    model, folder = net(), RunFolder(tmp_path)
    config = TrainConfig(epochs=3, weight_decay=0.0)
    fit(model, Whole(inputs), TASK, y, train_mask, val_mask, config, folder=folder)
    saved = load_file(folder.checkpoint)
    for name, weight in model.named_parameters():
        assert saved[f"adam.{name}.step"].item() == 3
        assert saved[f"adam.{name}.exp_avg"].shape == weight.shape


def test_the_learning_rate_is_not_to_blame_before_the_first_step():
    from dgt.training.loop import _require_finite

    nan = float("nan")
    row = {"epoch": 1, "train_loss": nan, "val_loss": nan}
    with pytest.raises(InputError, match=r"epoch 1: .* initial weights; the features or"):
        _require_finite(row, TrainConfig())
    for changes in ({"epoch": 2}, {"train_loss": 1.0}):
        with pytest.raises(InputError, match=r"epoch \d: .*; try an lr below 0\.01"):
            _require_finite(row | changes, TrainConfig())
