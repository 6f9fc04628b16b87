"""Predicts the memory that training needs; docs/large-graphs.md derives the formulas."""

import itertools
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dgt.config import Config
from dgt.prepare import reads_labels
from dgt.system import machine
from dgt.system.devices import free_memory
from dgt.system.machine import available

log = logging.getLogger("dgt")

CPU = torch.device("cpu")
INT = 4  # bytes per entry of a sequence
FLOAT = {"single": 4, "double": 8, "bfloat16": 2}
# Tensors of the size of the first layer of the encoding in training: the weight, its gradient, two
# of Adam, the average and the best epoch.
COPIES = 6
# Predictions are within a quarter of the measured memory; twice as much is certain to fail.
HOPELESS = 2


def of_step(config: Config, rows: Sequence[int], classes: int) -> int:
    """Returns the bytes that a step needs besides its inputs when it processes all nodes at once.

    Args:
        config: The settings.
        rows: Number of nodes before the first block, after the first block and so on; the last
            entry is the number of nodes whose logits are computed.
        classes: Number of classes.
    """
    model, T = config.model, len(config.criteria)
    query = 2 * T * model.heads * model.keys / model.hidden_channels + T * _probe(config)
    # Saved for the backward pass, in rows of C channels: norm and ReLU of the layers before the
    # first block. In each block, its norm, input and values; for the queries, their offsets and
    # attention, what they read, and norm and ReLU of the MLP.
    kept: float = rows[0] * 2 * (model.feature_layers - 1 + (config.encoding.encoding != "none"))
    dropped = 2 if model.value_dropout else 0  # the mask, and the channels that it leaves
    for read, attend in itertools.pairwise(rows):
        kept += read * (2 + T + dropped) + attend * (1 + query + T)
    kept += sum(rows[1:-1]) * (1 + model.mlp_ratio)
    # The peak is either in the backward pass of the last block's attention: gradients of its input,
    # values and queries, and two planes of values per thread.
    planes = _planes(config, T * model.heads)
    read, attend = rows[-2:]
    now = read * (1 + T + planes) + attend * (T + query)
    # Or it is in that of the head, which saves more per query, but before these gradients exist.
    head = attend * (5 + model.mlp_ratio) + attend * 3 * classes / model.hidden_channels
    copy = _of_sequences(config) * attend
    return int(FLOAT[model.precision] * model.hidden_channels * (kept + max(now, head))) + copy


def of_chunks(
    config: Config, nodes: int, queries: int, classes: int, chunk: int, ranks: int = 1
) -> int:
    """Returns the bytes that a step needs besides its inputs when it processes nodes in chunks.

    Args:
        config: The settings.
        nodes: Number of nodes N.
        queries: Number of nodes whose logits are computed.
        classes: Number of classes.
        chunk: Nodes per chunk.
        ranks: Number of processes.
    """
    model = config.model
    own, queries = -(-nodes // ranks), -(-queries // ranks)
    kept = own * (1 + 5 * (model.blocks - 1))
    # In the backward pass of one criterion: the values of all nodes, the chunks they are joined
    # from and their gradient; of this process's own nodes, the gradients of z and of its norm.
    planes = _planes(config, model.heads)
    # Value dropout adds its mask, the channels that it leaves, and their gradient.
    dropped = 3 if model.value_dropout else 0
    exchanged = nodes * (3 + planes) + own * (3 + (ranks > 1) + dropped)
    at_once = min(chunk, own) * (6 + 4 * model.heads * model.keys / model.hidden_channels)
    at_once += 3 * queries * _probe(config)
    rows = kept + exchanged + queries * (4 + 2 * classes / model.hidden_channels) + at_once
    if ranks > 1:  # what is kept of all criteria, and its gradients
        T = len(config.criteria)
        query = 2 * T * model.heads * model.keys / model.hidden_channels + T * _probe(config)
        rows += 2 * own * T + 2 * queries * (T + query)
    copy = _of_sequences(config) * queries
    return int(FLOAT[model.precision] * model.hidden_channels * rows) + copy


def _probe(config: Config) -> float:
    """Returns the memory of the probes of a query for one criterion, in rows of C channels."""
    scored = "closeness" in config.record.inputs
    return 1 + config.model.heads / config.model.hidden_channels if scored else 0.0


def _of_sequences(config: Config) -> int:
    """Returns the bytes of the sequences of a node, with their closeness if the model reads it."""
    each = INT
    if "closeness" in config.record.inputs:
        each += FLOAT[config.model.precision]
    return each * len(config.criteria) * config.sequences.length


def _planes(config: Config, tasks: int) -> float:
    """Returns the memory of the planes of values that threads gather from, in rows of C channels
    per node."""
    # Values and, in double precision, their gradients. In half precision, the planes are in single
    # precision too, and so are copies of their inputs and outputs.
    each = {"double": 2, "single": 3, "bfloat16": 12}[config.model.precision]
    return each * min(torch.get_num_threads(), tasks) / config.model.heads


def most_rows(config: Config, nodes: int, batch: int) -> list[int]:
    """Returns an upper bound on the nodes that a batch reaches, as ``rows`` of :func:`of_step`."""
    each = len(config.criteria) * (config.sequences.length - 1) + 1
    rows = [min(nodes, batch)]
    for _ in range(config.model.blocks):
        rows.insert(0, min(nodes, rows[0] * each))
    return rows


def of_batches(
    config: Config, rows: Sequence[int], features: float, entries: float, classes: int
) -> int:
    """Returns the bytes that a step needs for a batch, including copies of its inputs.

    Args:
        config: The settings.
        rows: Number of nodes as in :func:`of_step`, from :func:`most_rows`.
        features: Stored values per node of the features.
        entries: Stored values per node of the positional encoding.
        classes: Number of classes.
    """
    sequences = _of_sequences(config) * sum(rows[1:])
    columns = features + 3 * entries + (classes + 1 if reads_labels(config) else 0)
    inputs = FLOAT[config.model.precision] * rows[0] * columns
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
    gpu: str | None = None,
    columns: int = 0,
) -> str | None:
    """Returns a message if training will not fit into memory, otherwise None.

    Args:
        config: The settings.
        nodes: Number of nodes N.
        queries: Number of nodes whose logits a step of the whole graph computes.
        features: Stored values per node of the features.
        entries: Stored values per node of the positional encoding.
        classes: Number of classes.
        ranks: Number of processes.
        room: Available bytes (default: :func:`available`).
        gpu: Name of the GPU that they are on, to which inputs have yet to be moved.
        columns: Number of columns of the positional encoding.
    """
    room = available() if room is None else room

    def total(chosen: Config) -> int:
        need = predict(chosen, nodes, queries, features, entries, classes, ranks)
        need += of_first_layer(chosen, columns)
        return need + (of_inputs(chosen, nodes, features, entries, classes) // ranks if gpu else 0)

    need = total(config)
    if need <= room:
        return None
    needed = f"{_gb(need)} of additional memory" + (f" on {gpu}" if gpu else "")
    said = f"training needs about {needed}, but only {_gb(room)} are free"
    if config.model.norm == "batch":
        return f"{said}; with a norm other than batch, --chunk-size and --batch-size can be used"
    tries = [f"--chunk-size {chunk}" for chunk in _halves(nodes // 4)]
    if ranks == 1:
        tries += [f"--batch-size {batch}" for batch in _halves(queries // 2)]
    for flag in tries:
        name, value = flag.removeprefix("--").split()
        sizes = {"chunk_size": None, "batch_size": None, name.replace("-", "_"): int(value)}
        less = total(config.replace(**sizes))
        if less <= room:
            return f"{said}; with {flag} it would need {_gb(less)}"
    return f"{said}; use more machines (torchrun) or a smaller model"


def of_first_layer(config: Config, columns: int) -> int:
    """Returns the bytes of the weights that embed the columns of the positional encoding, with what
    training keeps of them. Every process has all of them."""
    size = FLOAT["double" if config.model.precision == "double" else "single"]
    return COPIES * size * columns * config.model.hidden_channels


def of_inputs(config: Config, nodes: int, features: float, entries: float, classes: int) -> int:
    """Returns the bytes of the inputs that are on a GPU all the time: none of batches, and of
    chunks not the sequences; arguments as in :func:`warning`."""
    if config.train.batch_size is not None:
        return 0
    sequences = _of_sequences(config) * nodes
    if config.train.chunk_size is not None:
        sequences //= len(config.criteria)  # those of one criterion at a time
    columns = features + 3 * entries + (classes + 1 if reads_labels(config) else 0)
    return int(FLOAT[config.model.precision] * nodes * columns) + sequences


def warn(
    config: Config,
    inputs: Mapping[str, Any],
    queries: int,
    classes: int,
    ranks: int = 1,
    device: torch.device = CPU,
) -> None:
    """Logs the :func:`warning` for the inputs of DGT, if there is one.

    Args:
        config: The settings.
        inputs: ``x``, ``sequences`` and ``encoding`` of the whole graph.
        queries: Number of nodes whose logits a step of the whole graph computes.
        classes: Number of classes.
        ranks: Number of processes.
        device: Device of the model.
    """
    room = free_memory(device)
    if room is None:
        return
    nodes = inputs["sequences"].size(1)
    features, entries = (_stored(inputs[name]) / nodes for name in ("x", "encoding"))
    gpu = None if device.type == "cpu" else str(device)
    columns = 0 if inputs["encoding"] is None else inputs["encoding"].size(1)
    sizes = (nodes, queries, features, entries, classes)
    text = warning(config, *sizes, ranks, room, gpu, columns)
    if text is not None:
        log.warning(text)


def require(config: Config, nodes: int, queries: int, classes: int, ranks: int = 1) -> None:
    """Raises an error if training on the CPU is certain to run out of memory.

    Args:
        config: The settings.
        nodes: Number of nodes N.
        queries: Number of nodes whose logits a step of the whole graph computes.
        classes: Number of classes.
        ranks: Number of processes.
    """
    model = config.model
    # Every model keeps at least one hidden vector per node, and its gradient.
    needed: float = 2 * FLOAT[model.precision] * model.hidden_channels * nodes
    if config.train.batch_size is not None:
        return
    if config.record.batching:
        needed = predict(config, nodes, queries, 0, 0, classes, ranks) / HOPELESS
    machine.require(needed, f"training {model.model} on {nodes:,} nodes")


def _stored(matrix: Tensor | None) -> int:
    """Returns the number of stored values of a dense or sparse matrix."""
    if matrix is None:
        return 0
    return len(matrix.values()) if matrix.layout == torch.sparse_csr else matrix.numel()


def predict(
    config: Config,
    nodes: int,
    queries: int,
    features: float,
    entries: float,
    classes: int,
    ranks: int = 1,
) -> int:
    """Returns the bytes that training needs besides its inputs; arguments as in :func:`warning`."""
    train = config.train
    if train.batch_size is not None:
        rows = most_rows(config, nodes, min(train.batch_size, queries))
        return of_batches(config, rows, features, entries, classes)
    if ranks > 1 or train.chunk_size is not None:
        chunk = train.chunk_size or nodes
        return of_chunks(config, nodes, queries, classes, chunk, ranks)
    return of_step(config, [nodes] * config.model.blocks + [queries], classes)


def _halves(number: int) -> list[int]:
    """Returns the powers of two from ``number`` down to 256."""
    return [2**k for k in range(max(number, 256).bit_length() - 1, 7, -1)]


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
