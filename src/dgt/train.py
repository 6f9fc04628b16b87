"""The one training loop: full-graph steps of Adam, stopped early on validation."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
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

from dgt import checkpoint
from dgt.config import TrainConfig
from dgt.errors import InputError
from dgt.files import write_text
from dgt.folder import CHECKPOINT, EPOCHS

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
    inputs: Mapping[str, Tensor | None],
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
        inputs: What the model takes.
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
        identity = checkpoint.fingerprint([*inputs.values(), y, train_mask, val_mask])
    at = checkpoint.Progress(identity)
    best: dict[str, Tensor] = {}
    average = {name: value.clone() for name, value in model.state_dict().items()}

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if out is not None and resume and (out / CHECKPOINT).is_file():
            at, average, best = checkpoint.restore(out / CHECKPOINT, identity, model, optimizer)
        started = saved = time.monotonic()
        before = at.seconds
        with _log(out, at.rows) as log, _display(config.epochs, progress) as show:
            for epoch in range(len(at.rows) + 1, config.epochs + 1):
                if epoch > at.best_epoch + config.patience:
                    break
                model.train()
                optimizer.zero_grad()
                logits = model(**inputs, nodes=train)
                loss = F.cross_entropy(logits, y[train])
                loss.backward()
                optimizer.step()
                # The average of the first epochs is over these alone.
                kept = min(config.average, epoch / (epoch + 10))
                for name, value in model.state_dict().items():
                    mixed = (
                        average[name].lerp(value, 1 - kept) if value.is_floating_point() else value
                    )
                    average[name].copy_(mixed)
                model.eval()
                with torch.no_grad():
                    val_logits = functional_call(model, average, kwargs={**inputs, "nodes": val})
                row = {
                    "epoch": epoch,
                    "train_loss": loss.item(),
                    "train_accuracy": _accuracy(logits, y[train]),
                    "val_loss": F.cross_entropy(val_logits, y[val]).item(),
                    "val_accuracy": _accuracy(val_logits, y[val]),
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

    model.load_state_dict(best)
    model.eval()
    return History(at.rows, at.best_epoch, at.seconds)


def _weights(model: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """The model's weights by weight decay: the parts ``features`` and ``encoding``, which DGT alone
    has, may have their own."""
    own = {"features": config.feature_weight_decay, "encoding": config.encoding_weight_decay}
    groups: dict[float, list[nn.Parameter]] = {}
    for name, weight in model.named_parameters():
        decay = own.get(name.split(".")[0], config.weight_decay)
        groups.setdefault(decay, []).append(weight)
    return [{"params": weights, "weight_decay": decay} for decay, weights in groups.items()]


def _accuracy(logits: Tensor, y: Tensor) -> float:
    return int((logits.argmax(dim=1) == y).sum()) / len(y)


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
