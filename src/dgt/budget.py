"""How much memory training takes, before it starts; docs/scaling.md derives the formulas."""

import itertools
from collections.abc import Sequence

import torch

from dgt.config import Config
from dgt.machine import available

INT = 4  # bytes of a node of a sequence
FLOAT = {"single": 4, "double": 8}


def of_step(config: Config, rows: Sequence[int], classes: int) -> int:
    """Bytes that a step takes beside its inputs when all its nodes are worked on at once.

    Args:
        config: The settings.
        rows: The nodes before the first block, after it and so on; at last those that logits are
            computed of.
        classes: Number of classes.
    """
    model, T = config.model, len(config.criteria)
    query = 2 * T * model.heads * model.keys / model.hidden_channels
    # Kept for the backward pass, in rows of C channels: norm and ReLU of the layers before the
    # first block; each block's norm, what may be read of it and values, then of those that attend
    # their offsets and attention, what they read, and the MLP's norm and ReLU.
    kept: float = rows[0] * 2 * (model.feature_layers - 1 + (config.encoding.encoding != "none"))
    for read, attend in itertools.pairwise(rows):
        kept += read * (2 + T) + attend * (1 + query + T)
    kept += sum(rows[1:-1]) * (1 + model.mlp_ratio)
    # At most when the last block's attention goes backward: the gradients of its input, values and
    # queries, and two planes of values for each thread.
    planes = 2 * min(torch.get_num_threads(), T * model.heads) / model.heads
    read, attend = rows[-2:]
    now = read * (1 + T + planes) + attend * (T + query)
    # Or when the head does, which keeps more of the nodes' own and has none of that yet.
    head = attend * (5 + model.mlp_ratio) + attend * 3 * classes / model.hidden_channels
    copy = INT * T * config.sequences.length * attend  # of the sequences of those that attend
    return int(FLOAT[model.precision] * model.hidden_channels * (kept + max(now, head))) + copy


def of_chunks(
    config: Config, nodes: int, queries: int, classes: int, chunk: int, ranks: int = 1
) -> int:
    """Bytes that a step takes beside its inputs when its nodes are worked on in chunks.

    Args:
        config: The settings.
        nodes: Number of nodes N.
        queries: The nodes that logits are computed of.
        classes: Number of classes.
        chunk: Nodes in a chunk.
        ranks: The processes that share the work.
    """
    model = config.model
    own, queries = -(-nodes // ranks), -(-queries // ranks)
    kept = own * (1 + 3 * (model.blocks - 1))
    # The values of one criterion of all nodes and their gradient, of one chunk and summed.
    sums = 1 + (queries > chunk)
    planes = 2 * min(torch.get_num_threads(), model.heads) / model.heads
    exchanged = nodes * (1 + sums + planes) + own * (1 + (ranks > 1))
    at_once = min(chunk, own) * (6 + 4 * model.heads * model.keys / model.hidden_channels)
    rows = kept + exchanged + queries * (4 + 2 * classes / model.hidden_channels) + at_once
    copy = INT * len(config.criteria) * config.sequences.length * queries
    return int(FLOAT[model.precision] * model.hidden_channels * rows) + copy


def most_rows(config: Config, nodes: int, batch: int) -> list[int]:
    """The nodes that a batch can reach at most, from before the first block to the last."""
    each = len(config.criteria) * (config.sequences.length - 1) + 1
    rows = [min(nodes, batch)]
    for _ in range(config.model.blocks):
        rows.insert(0, min(nodes, rows[0] * each))
    return rows


def of_batches(
    config: Config, rows: Sequence[int], features: float, entries: float, classes: int
) -> int:
    """Bytes that a step takes for a batch that reaches ``rows`` (:func:`most_rows`), with copies of
    its inputs.

    Args:
        config: The settings.
        rows: As in :func:`of_step`.
        features: Stored values a node of the features.
        entries: Stored values a node of the positional encoding.
        classes: Number of classes.
    """
    sequences = INT * len(config.criteria) * config.sequences.length * sum(rows[1:])
    inputs = FLOAT[config.model.precision] * rows[0] * (features + 3 * entries)
    return of_step(config, rows, classes) + int(2 * sequences + inputs)


def warning(
    config: Config,
    nodes: int,
    queries: int,
    features: float,
    entries: float,
    classes: int,
    ranks: int = 1,
    room: int | None = None,
) -> str | None:
    """What to tell a user whose training will not fit into memory, or None where it will.

    Args:
        config: The settings.
        nodes: Number of nodes N.
        queries: The nodes that a step of the whole graph computes logits of.
        features: Stored values a node of the features.
        entries: Stored values a node of the positional encoding.
        classes: Number of classes.
        ranks: The processes that share the work.
        room: Bytes there are (default: :func:`available`).
    """
    room = available() if room is None else room
    need = predict(config, nodes, queries, features, entries, classes, ranks)
    if need <= room:
        return None
    said = f"training needs about {_gb(need)} more memory, and {_gb(room)} are free"
    if config.model.norm == "batch":
        return f"{said}; a norm other than batch would allow for --batch-size"
    tries = [f"--chunk-size {chunk}" for chunk in _halves(nodes // 4)]
    if ranks == 1:
        tries += [f"--batch-size {batch}" for batch in _halves(queries // 2)]
    for flag in tries:
        name, value = flag.removeprefix("--").split()
        sizes = {"chunk_size": None, "batch_size": None, name.replace("-", "_"): int(value)}
        less = predict(config.replace(**sizes), nodes, queries, features, entries, classes, ranks)
        if less <= room:
            return f"{said}; with {flag} it would need {_gb(less)}"
    return f"{said}; it takes more machines (torchrun) or a smaller model"


def predict(
    config: Config,
    nodes: int,
    queries: int,
    features: float,
    entries: float,
    classes: int,
    ranks: int = 1,
) -> int:
    """Bytes that training takes beside its inputs; arguments as for :func:`warning`."""
    train = config.train
    if train.batch_size is not None:
        rows = most_rows(config, nodes, min(train.batch_size, queries))
        return of_batches(config, rows, features, entries, classes)
    if ranks > 1 or train.chunk_size is not None:
        chunk = train.chunk_size or nodes
        return of_chunks(config, nodes, queries, classes, chunk, ranks)
    return of_step(config, [nodes] * config.model.blocks + [queries], classes)


def _halves(number: int) -> list[int]:
    """Powers of two from below a number down to 256."""
    return [2**k for k in range(max(number, 256).bit_length() - 1, 7, -1)]


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
