"""Trains every model for a step on the ``meta`` device, where a tensor left on the CPU fails."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from dgt.config import Config
from dgt.models import MODELS, build
from dgt.prepare import prepare
from dgt.training.batching import Whole
from dgt.training.loop import parameter_groups, update_average
from dgt.training.steps import step as training_step
from dgt.training.steps import steps_for
from dgt.training.task import Classification
from tests.small import block_graph

CLASSES = 3


def prepared(name: str, *, sparse: bool, **settings: Any) -> tuple[nn.Module, dict[str, Any]]:
    """Returns the model and its inputs; dropout makes sure that random numbers are drawn."""
    data = block_graph(classes=CLASSES, features=100 if sparse else 12)
    if sparse:
        data.x = data.x * (data.x > 2.6)
    config = Config.of("dgt")
    settings = {
        "dropout": 0.3,
        "input_dropout": 0.2,
        "hidden_channels": 16,
        "blocks": 2,
        **settings,
    }
    config = replace(config, model=replace(config.model, model=name, **settings))
    inputs = prepare(data, config)
    features = inputs["smoothed" if "smoothed" in inputs else "x"]
    assert features is not None
    if sparse and "x" in inputs:
        assert features.layout == torch.sparse_csr
    encoding = inputs.get("encoding")
    columns = 0 if encoding is None else encoding.size(1)
    return build(config, features.size(1), CLASSES, columns), inputs


def on_meta(name: str, *, sparse: bool, **settings: Any) -> tuple[nn.Module, dict[str, Any]]:
    """Returns the model and its inputs on ``meta``."""
    model, inputs = prepared(name, sparse=sparse, **settings)
    moved = {key: None if x is None else x.to("meta") for key, x in inputs.items()}
    return model.to("meta"), moved


def step(model: nn.Module, inputs: dict[str, Any]) -> None:
    """Runs a forward pass, the loss and a backward pass."""
    model.train()
    nodes = torch.arange(0, 60, device="meta")
    labels = torch.zeros(60, dtype=torch.int64, device="meta")
    F.cross_entropy(model(**inputs, nodes=nodes), labels).backward()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense features", "sparse features"])
@pytest.mark.parametrize("name", MODELS)
def test_training_step_on_another_device(name: str, sparse: bool) -> None:
    model, inputs = on_meta(name, sparse=sparse)
    step(model, inputs)
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.device.type == "meta", key
    model.eval()
    assert model(**inputs).device.type == "meta"


@pytest.mark.parametrize("name", MODELS)
def test_an_input_left_on_the_cpu_is_found(name: str) -> None:
    model, inputs = on_meta(name, sparse=False)
    for key, x in inputs.items():
        left: Tensor | None = None if x is None else torch.zeros_like(x, device="cpu")
        if left is None:
            continue
        with pytest.raises((ValueError, RuntimeError), match=r"device|meta"):
            step(model, {**inputs, key: left})


@pytest.mark.parametrize("name", MODELS)
def test_epoch_on_another_device(name: str) -> None:
    """A step with the optimizer, the average of the weights, and an evaluation with it."""
    model, inputs = on_meta(name, sparse=False)
    config = Config.of(name).train
    optimizer = torch.optim.Adam(parameter_groups(model, config), lr=0.1)
    average = {key: value.clone() for key, value in model.state_dict().items()}
    steps, task = Whole(inputs), Classification(CLASSES)
    nodes, y = (torch.zeros(n, dtype=torch.int64, device="meta") for n in (60, 90))
    model.train()
    loss, logits = training_step(model, steps, task, nodes, y)
    optimizer.step()
    update_average(average, model, 0.9, 1)
    model.eval()
    with torch.no_grad():
        predicted = steps.predict(lambda **given: functional_call(model, average, kwargs=given))
    kept = [value for state in optimizer.state.values() for value in state.values()]
    states = [value for value in kept if value.dim()]  # the number of steps stays on the CPU
    assert len(states) >= len(list(model.parameters()))
    assert {x.device.type for x in (loss, logits, predicted, *states, *average.values())} == {
        "meta"
    }


@pytest.mark.parametrize("name", ["dgt", "dgt-light"])
@pytest.mark.parametrize("setting", ["chunk_size", "batch_size"])
def test_sequences_of_chunks_and_batches_stay_on_the_host(name: str, setting: str) -> None:
    """Only the parts that a step needs are moved to the device."""
    model, inputs = prepared(name, sparse=False, value_dropout=0.2)
    inputs["encoding"] = inputs["encoding"].to_dense()  # chunks of sparse rows depend on values
    config = Config.of(name).replace(**{setting: 16, "blocks": 2})
    steps = steps_for(config, inputs, torch.device("meta"))
    assert steps.given["sequences"].device.type == "cpu"
    assert steps.given["x"].device.type == ("meta" if setting == "chunk_size" else "cpu")
    model = model.to("meta").train()
    logits = steps.logits(model, torch.arange(0, 90, 3))  # nodes on meta would have no values
    logits.sum().backward()
    assert logits.shape == (30, CLASSES)
    grads = [weight.grad for weight in model.parameters()]
    assert {grad.device.type for grad in grads if grad is not None} == {"meta"}
