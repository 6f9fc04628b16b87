"""The one training loop: steps of Adam, stopped early on validation."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor, nn
from torch.func import functional_call

from dgt import checkpoint, distributed
from dgt.config import TrainConfig
from dgt.errors import InputError
from dgt.files import write_text
from dgt.folder import CHECKPOINT, EPOCHS
from dgt.nn.memory import POOL
from dgt.steps import Whole

# Only how much work a killed run loses depends on this, never its result.
CHECKPOINT_SECONDS = 5.0
LINE_EPOCHS = 100


@dataclass(frozen=True)
class History:
    """What training went through."""

    epochs: list[dict[str, float]]
    """One row an epoch: epoch, train_loss, train_accuracy, val_loss, val_accuracy; those of the
    training nodes are taken in the step itself, with dropout."""
    best_epoch: int
    seconds: float


def fit(
    model: nn.Module,
    steps: Whole,
    y: Tensor,
    train_mask: Tensor,
    val_mask: Tensor,
    config: TrainConfig,
    *,
    out: Path | None = None,
    resume: bool = False,
    progress: bool = False,
) -> History:
    """Trains a model; leaves in it the weights of the best epoch.

    An epoch is better than another if its validation accuracy is higher or, where they are equal,
    its validation loss lower. Training stops after ``config.patience`` epochs without a better one.
    Same seed, same machine: the same weights, bit for bit, whatever the number of threads.

    Args:
        model: Any module whose ``model(**inputs, nodes=nodes)`` are the logits of these nodes, of
            shape [nodes, classes].
        steps: What a step works on, of :mod:`dgt.steps`, with what the model takes.
        y: The nodes' classes, shape [N].
        train_mask: The nodes that the loss is taken over.
        val_mask: The nodes that choose the best epoch.
        config: The settings.
        out: Folder for ``metrics.jsonl`` and for a checkpoint every few seconds.
        resume: Go on from the checkpoint in ``out``, if there is one, to the same result as
            training that was never interrupted.
        progress: Show the live accuracy on stderr.
    """
    train, val = (mask.nonzero().squeeze(1) for mask in (train_mask, val_mask))
    optimizer = torch.optim.Adam(_weights(model, config), lr=config.lr, fused=True)
    identity = ""
    if out is not None:
        identity = steps.identity() + checkpoint.fingerprint([y, train_mask, val_mask])
    at = checkpoint.Progress(identity)
    best: dict[str, Tensor] = {}
    average = {name: value.clone() for name, value in model.state_dict().items()}

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if resume and (saved_state := distributed.by_first(lambda: _saved(out, identity))):
            at, tensors = saved_state
            average, best = checkpoint.restore(tensors, model, optimizer)
        started = saved = time.monotonic()
        before = at.seconds
        with _log(out, at.rows) as log, _display(config.epochs, progress) as show:
            for epoch in range(len(at.rows) + 1, config.epochs + 1):
                if epoch > at.best_epoch + config.patience:
                    break
                model.train()
                tally = torch.zeros(2, dtype=torch.float64)  # loss, and number of nodes right
                for batch in steps.batches(train):
                    optimizer.zero_grad()
                    logits, classes = model(**steps.inputs(batch)), y[steps.own(batch)]
                    loss = F.cross_entropy(logits, classes, reduction="sum") / len(batch)
                    loss.backward()
                    steps.add_up(w.grad for w in model.parameters() if w.grad is not None)
                    optimizer.step()
                    tally += _tally(loss * (len(batch) / len(train)), logits, classes)
                # The average of the first epochs is over these alone.
                kept = min(config.average, epoch / (epoch + 10))
                for name, value in model.state_dict().items():
                    mixed = (
                        average[name].lerp(value, 1 - kept) if value.is_floating_point() else value
                    )
                    average[name].copy_(mixed)
                del logits, loss
                val_tally = _evaluate(model, average, steps, val, y)
                steps.add_up([tally, val_tally])
                row = {
                    "epoch": epoch,
                    "train_loss": tally[0].item(),
                    "train_accuracy": tally[1].item() / len(train),
                    "val_loss": val_tally[0].item(),
                    "val_accuracy": val_tally[1].item() / len(val),
                }
                if not math.isfinite(row["train_loss"] + row["val_loss"]):
                    raise InputError(
                        f"epoch {epoch}: the loss is no longer a finite number; "
                        f"try an lr below {config.lr:g}"
                    )
                at.rows.append(row)
                log(row)
                at.seconds = before + time.monotonic() - started
                accuracy, val_loss = row["val_accuracy"], row["val_loss"]
                if (accuracy, -val_loss) > (at.best_accuracy, -at.best_loss):
                    at.best_epoch, at.best_accuracy, at.best_loss = epoch, accuracy, val_loss
                    best = {name: value.clone() for name, value in average.items()}
                show(row, at.best_accuracy)
                if out is not None and time.monotonic() - saved >= CHECKPOINT_SECONDS:
                    checkpoint.save(out / CHECKPOINT, at, model, average, best, optimizer)
                    saved = time.monotonic()

    POOL.clear()
    model.load_state_dict(best)
    model.eval()
    return History(at.rows, at.best_epoch, at.seconds)


def _weights(model: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """The model's weights by weight decay: the parts ``features``, ``encoding`` and ``query``,
    which DGT alone has, have their own."""
    own = {
        "features": config.feature_weight_decay,
        "encoding": config.encoding_weight_decay,
        "query": config.key_weight_decay,
    }
    groups: dict[float, list[nn.Parameter]] = {}
    for name, weight in model.named_parameters():
        part = next((part for part in name.split(".") if part in own), "")
        decay = own.get(part, config.weight_decay)
        groups.setdefault(decay, []).append(weight)
    return [{"params": weights, "weight_decay": decay} for decay, weights in groups.items()]


@torch.no_grad()
def _evaluate(
    model: nn.Module, weights: dict[str, Tensor], steps: Whole, nodes: Tensor, y: Tensor
) -> Tensor:
    """Mean loss, and number of nodes right, with other weights than the model's own."""
    model.eval()
    tally = torch.zeros(2, dtype=torch.float64)
    for piece in steps.pieces(nodes):
        logits = functional_call(model, weights, kwargs=steps.inputs(piece))
        classes = y[steps.own(piece)]
        loss = F.cross_entropy(logits, classes, reduction="sum") / len(piece)
        tally += _tally(loss * (len(piece) / len(nodes)), logits, classes)
    return tally


def _tally(loss: Tensor, logits: Tensor, classes: Tensor) -> Tensor:
    right = (logits.argmax(dim=1) == classes).sum()
    return torch.stack([loss.detach().double(), right.double()])


def _saved(out: Path | None, identity: str) -> tuple[checkpoint.Progress, dict[str, Tensor]] | None:
    """What the last checkpoint holds, if there is one."""
    if out is None or not (out / CHECKPOINT).is_file():
        return None
    return checkpoint.read(out / CHECKPOINT, identity)


@contextmanager
def _log(
    out: Path | None, rows: list[dict[str, float]]
) -> Iterator[Callable[[dict[str, float]], None]]:
    """Yields a function that appends an epoch to the log, after those in ``rows``."""
    if out is None:
        yield lambda row: None
        return
    path = out / EPOCHS
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    with open(path, "a", buffering=1) as file:

        def log(row: dict[str, float]) -> None:
            file.write(json.dumps(row) + "\n")

        yield log


@contextmanager
def _display(epochs: int, enabled: bool) -> Iterator[Callable[[dict[str, float], float], None]]:
    """Yields a function that shows an epoch: a live bar on a terminal, else a line now and then."""
    console = Console(stderr=True)
    if not enabled:
        yield lambda row, best: None
    elif not console.is_terminal:

        def line(row: dict[str, float], best: float) -> None:
            if row["epoch"] % LINE_EPOCHS == 0:
                print(f"epoch {row['epoch']}: {_text(row, best)}", file=sys.stderr)

        yield line
    else:
        with Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
        ) as bar:
            task = bar.add_task("", total=epochs)
            yield lambda row, best: bar.update(
                task, completed=row["epoch"], description=_text(row, best)
            )


def _text(row: dict[str, float], best: float) -> str:
    train, val = row["train_accuracy"], row["val_accuracy"]
    return f"train {train:.1%}  val {val:.1%}  best val {best:.1%}"
