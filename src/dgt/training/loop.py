"""The training loop: Adam with early stopping on validation nodes."""

import contextlib
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dgt.config import TrainConfig
from dgt.errors import InputError, OwnCodeError
from dgt.ops.memory import POOL
from dgt.runs.folder import Row, RunFolder
from dgt.runs.kept import keep
from dgt.storage.fingerprint import fingerprint
from dgt.system.devices import seeded, supports_fused_adam
from dgt.system.progress import Curve, live_bar
from dgt.training import checkpoint, distributed
from dgt.training.batching import Forward, Whole
from dgt.training.steps import compiled, evaluate, joined, step
from dgt.training.task import Task

# Bounds the work that an interrupted run loses; results do not depend on it.
CHECKPOINT_SECONDS = 5.0
LINE_EPOCHS = 100


@dataclass(frozen=True)
class History:
    """History of training."""

    epochs: list[Row]
    """Per epoch: epoch, train_loss, train_METRIC, val_loss and val_METRIC. Those of the training
    nodes are computed in the training step, with dropout. If a step has only some of the training
    nodes, and these do not define the metric, it is that of the epoch before, or 0."""
    best_epoch: int
    seconds: float


def fit(
    model: nn.Module,
    steps: Whole,
    task: Task,
    y: Tensor,
    train_mask: Tensor,
    val_mask: Tensor,
    config: TrainConfig,
    *,
    folder: RunFolder | None = None,
    resume: bool = False,
    progress: bool = False,
    on_epoch: Callable[[int, float], None] | None = None,
    title: str = "epochs",
) -> History:
    """Trains a model and loads the weights of the best epoch.

    The best epoch has the best value of the task's metric on validation nodes, where ties are
    broken by the validation loss, or the least validation loss (``config.select_by``). Training
    stops after ``config.patience`` epochs without improvement. The same seed gives the same
    weights, bit for bit, on the CPU of the same machine, for any number of threads.

    Args:
        model: Any module whose ``model(**inputs, nodes=nodes)`` returns the logits of these nodes,
            of shape ``(nodes, task.out_channels)``. Training runs on its device.
        steps: What a step works on, with the model's inputs, see :mod:`dgt.training.batching`.
        task: Defines the loss and the metric.
        y: The label of each node. Shape: ``(N,)``.
        train_mask: The nodes that the loss is computed on.
        val_mask: The nodes that select the best epoch.
        config: The settings.
        folder: Folder for the log of epochs and for checkpoints, which are saved every few seconds.
        resume: Continue from the checkpoint in ``folder``, if there is one. The result is the same
            as that of uninterrupted training.
        progress: Show the metric on stderr.
        on_epoch: Called after each epoch with its number and the metric in the best one so far.
            An error that it raises ends training without a result.
        title: What the progress is of.
    """
    device = next(model.parameters()).device
    train, val = (mask.nonzero().squeeze(1).to(device) for mask in (train_mask, val_mask))
    labels = y.to(device)
    optimizer = torch.optim.Adam(
        parameter_groups(model, config), lr=config.lr, fused=supports_fused_adam(device)
    )
    forward = compiled(model) if config.compile else model
    identity = ""
    if folder is not None:
        identity = steps.identity() + fingerprint([y, train_mask, val_mask])
        if config.members > 1:
            identity += f" seed {config.seed}"
    at = checkpoint.Progress(identity)
    best: dict[str, Tensor] = {}
    average = {name: value.clone() for name, value in model.state_dict().items()}
    metric = task.metrics[task.metric]

    def quality(value: float, loss: float) -> tuple[float, float]:
        value = value if metric.larger_is_better else -value
        return (-loss, value) if config.select_by == "loss" else (value, -loss)

    with seeded(config.seed, device):
        if resume and (
            saved_state := distributed.by_first(lambda: _saved(folder, identity, model))
        ):
            at, tensors = saved_state
            average, best = checkpoint.restore(tensors, model, optimizer)
        _keep(folder, config, len(at.rows), average)
        started = saved = time.monotonic()
        before = at.seconds
        past = [row[f"val_{task.metric}"] for row in at.rows]
        curve = Curve(f"val {task.metric}", partial(metric.text, digits=1), past)
        with (
            _log(folder, at.rows) as log,
            live_bar(title, config.epochs, shown=progress, below=lambda: curve) as show,
        ):
            for epoch in range(len(at.rows) + 1, config.epochs + 1):
                if epoch > at.best_epoch + config.patience:
                    break
                before_value = at.rows[-1][f"train_{task.metric}"] if at.rows else 0.0
                after_step = partial(_average, average, model, config.average, epoch)
                train_loss, train_value = _epoch(
                    model, forward, optimizer, steps, task, train, labels, before_value, after_step
                )
                if not config.average:
                    average = model.state_dict()  # not copied
                used = average if config.average else None
                val_loss, val_value = _validate(model, used, steps, task, val, labels)
                train_loss, val_loss = _summed(steps, [train_loss, val_loss])
                row: Row = {
                    "epoch": epoch,
                    "train_loss": train_loss,
                    f"train_{task.metric}": train_value,
                    "val_loss": val_loss,
                    f"val_{task.metric}": val_value,
                }
                _require_finite(row, config)
                at.rows.append(row)
                curve.values.append(val_value)
                log(row)
                _keep(folder, config, epoch, average)
                at.seconds = before + time.monotonic() - started
                if not best or quality(val_value, val_loss) > quality(at.best_value, at.best_loss):
                    at.best_epoch, at.best_value, at.best_loss = epoch, val_value, val_loss
                    best = {name: weight.clone() for name, weight in average.items()}
                if on_epoch is not None:
                    on_epoch(epoch, at.best_value)
                values = (train_value, val_value, at.best_value)
                train_text, val_text, best_text = (metric.text(v, digits=1) for v in values)
                best_of = "best val" if config.select_by == "metric" else "val at least loss"
                status = f"train {train_text}  val {val_text}  {best_of} {best_text}"
                show(epoch, status, None if epoch % LINE_EPOCHS else f"epoch {epoch}: {status}")
                if folder is not None and time.monotonic() - saved >= CHECKPOINT_SECONDS:
                    checkpoint.save(folder.checkpoint, at, model, average, best, optimizer)
                    saved = time.monotonic()
        if folder is not None and config.members > 1:  # others are still to be trained
            checkpoint.save(folder.checkpoint, at, model, average, best, optimizer)

    POOL.clear()
    model.load_state_dict(best)
    model.eval()
    return History(at.rows, at.best_epoch, at.seconds)


def _epoch(
    model: nn.Module,
    forward: Forward,
    optimizer: torch.optim.Optimizer,
    steps: Whole,
    task: Task,
    nodes: Tensor,
    y: Tensor,
    before: float,
    after_step: Callable[[int, int], None],
) -> tuple[float, float]:
    """Runs all steps of an epoch; returns this process's share of the mean loss, and the metric.

    A few of the nodes may lack a class, so that the metric is not defined. It is then that of the
    epoch ``before``. ``after_step`` is called with the number of steps taken and of all.
    """
    model.train()
    total = 0.0
    found, order = [], list(steps.batches(nodes))
    count = sum(map(len, order))
    for taken, batch in enumerate(order, start=1):
        optimizer.zero_grad()
        loss, logits = step(model, steps, task, batch, y, forward)
        optimizer.step()
        after_step(taken, len(order))
        total += (loss * (len(batch) / count)).item()
        found.append(steps.all_of(logits, batch))
    try:
        return total, _value(task, joined(found), y[joined(order)])
    except InputError as error:
        if count == len(nodes) or isinstance(error, OwnCodeError):
            raise
        return total, before


def _validate(
    model: nn.Module,
    weights: dict[str, Tensor] | None,
    steps: Whole,
    task: Task,
    nodes: Tensor,
    y: Tensor,
) -> tuple[float, float]:
    """Returns this process's share of the mean loss, and the metric, with averaged weights, if
    there are any."""
    loss, logits = evaluate(model, weights, steps, task, nodes, y)
    return loss, _value(task, logits, y[nodes])


def _value(task: Task, logits: Tensor, y: Tensor) -> float:
    return task.measure(logits, y, [task.metric])[task.metric]


def _summed(steps: Whole, values: list[float]) -> list[float]:
    """Returns the values summed over all processes."""
    sums = torch.tensor(values, dtype=torch.float64)
    steps.add_up([sums])
    return sums.tolist()


def _average(
    average: dict[str, Tensor], model: nn.Module, kept: float, epoch: int, taken: int, steps: int
) -> None:
    """Averages weights after each step, so that ``kept`` of the average is left after an epoch."""
    if kept:
        update_average(average, model, kept ** (1 / steps), (epoch - 1) * steps + taken)


def update_average(average: dict[str, Tensor], model: nn.Module, kept: float, number: int) -> None:
    """Moves averaged weights toward those of a model, in place. Steps start at 1."""
    # In the first steps, the average forgets the initial weights faster.
    kept = min(kept, number / (number + 10))
    state = model.state_dict()
    real = [name for name, value in state.items() if value.is_floating_point()]
    torch._foreach_lerp_([average[n] for n in real], [state[n] for n in real], 1 - kept)
    for name in state.keys() - real:
        average[name].copy_(state[name])


def _require_finite(row: Row, config: TrainConfig) -> None:
    if row["epoch"] == 1 and not math.isfinite(row["train_loss"]):
        # No step has been taken yet.
        raise InputError(
            "epoch 1: the loss is not finite with the initial weights; the features or the "
            "encoding are too large, scale them"
        )
    if not math.isfinite(row["train_loss"] + row["val_loss"]):
        raise InputError(
            f"epoch {row['epoch']}: the loss is no longer finite; try an lr below {config.lr:g}"
        )


def parameter_groups(model: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """Returns the parameter groups of the optimizer, with a weight decay each.

    ``model.parameter_groups()``, if the model has it, returns parameters by the name of their
    setting. Otherwise, ``weight_decay`` applies to all parameters.
    """
    ask: Callable[[], dict[str, list[nn.Parameter]]] | None
    ask = getattr(model, "parameter_groups", None)
    groups = {"weight_decay": list(model.parameters())} if ask is None else ask()
    given = {id(weight) for weights in groups.values() for weight in weights}
    if given != {id(weight) for weight in model.parameters()}:
        raise ValueError(f"{type(model).__name__}.parameter_groups leaves out some parameters")
    return [
        {"params": weights, "weight_decay": getattr(config, name)}
        for name, weights in groups.items()
        if weights
    ]


def _saved(
    folder: RunFolder | None, identity: str, model: nn.Module
) -> tuple[checkpoint.Progress, dict[str, Tensor]] | None:
    """Reads the last checkpoint, if there is one."""
    if folder is None or not folder.checkpoint.is_file():
        return None
    return checkpoint.read(folder.checkpoint, identity, model)


def _keep(
    folder: RunFolder | None, config: TrainConfig, epoch: int, weights: dict[str, Tensor]
) -> None:
    """Keeps the weights of an epoch for ``dgt explore``, if the settings ask for it."""
    if folder is not None and config.keep_checkpoints:
        keep(folder.path, config.keep_checkpoints, epoch, weights)


def _log(
    folder: RunFolder | None, rows: list[Row]
) -> AbstractContextManager[Callable[[Row], None]]:
    if folder is None:
        return contextlib.nullcontext(lambda row: None)
    return folder.epochs_log(rows)
