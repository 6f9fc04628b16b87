"""Trains every model for a step on the ``meta`` device, where a tensor left on the CPU fails."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dgt.config import Config
from dgt.models import MODELS, build
from dgt.prepare import prepare
from tests.small import block_graph

CLASSES = 3


def on_meta(name: str, *, sparse: bool) -> tuple[nn.Module, dict[str, Any]]:
    """Returns the model and its inputs on ``meta``; dropout makes sure that random numbers are
    drawn."""
    data = block_graph(classes=CLASSES, features=100 if sparse else 12)
    if sparse:
        data.x = data.x * (data.x > 1.8)
    config = Config()
    settings = {"dropout": 0.3, "input_dropout": 0.2, "hidden_channels": 16, "blocks": 2}
    config = replace(config, model=replace(config.model, model=name, **settings))
    inputs = prepare(data, config)
    features = inputs["smoothed" if "smoothed" in inputs else "x"]
    assert features is not None
    encoding = inputs.get("encoding")
    columns = 0 if encoding is None else encoding.size(1)
    model = build(config, features.size(1), CLASSES, columns)
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
        with pytest.raises((ValueError, RuntimeError), match="device"):
            step(model, {**inputs, key: left})
