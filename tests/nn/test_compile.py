"""torch.compile without graph breaks gives the values and gradients of eager mode."""

from typing import Any

import pytest
import torch
from torch import Tensor

from dgt import InputError, NodeClassifier
from dgt.config import Config
from dgt.data.labels import label_columns
from dgt.models import build
from dgt.ops.sparse import Parts
from dgt.prepare import prepare
from tests.small import block_graph


def step(model: Any, inputs: dict[str, Any], backend: str | None) -> list[Tensor]:
    """Returns the logits and gradients of a step in training mode."""
    run: Any = model
    if backend is not None:
        torch._dynamo.reset()
        run = torch.compile(model, fullgraph=True, backend=backend)
        inputs = {
            name: Parts.of(x) if x is not None and x.layout == torch.sparse_csr else x
            for name, x in inputs.items()
        }
    torch.manual_seed(1)
    model.train()
    model.zero_grad()
    logits = run(**inputs, nodes=torch.arange(0, 90, 2))
    logits.square().sum().backward()
    return [logits.detach(), *(weight.grad.clone() for weight in model.parameters())]


def compare(backend: str, **settings: Any) -> float:
    """Returns the largest difference between compiled and eager mode."""
    data = block_graph(features=100)
    data.x = data.x * (data.x > 2.6)  # sparse
    config = Config.of("dgt").replace(**{"hidden_channels": 16, **settings})
    inputs = prepare(data, config, known=label_columns(data.y, 3))
    assert inputs["x"].layout == torch.sparse_csr
    torch.manual_seed(0)
    encoding = inputs["encoding"]
    model = build(config, data.num_features, 3, 0 if encoding is None else encoding.size(1))
    eager, found = (step(model, inputs, way) for way in (None, backend))
    pairs = zip(eager, found, strict=True)
    return max(float((a - b).abs().max() / a.abs().max().clamp(min=1e-9)) for a, b in pairs)


@pytest.mark.parametrize(
    "settings",
    [
        {"blocks": 2},
        {"model": "dgt-light", "value_dropout": 0.3, "interpolation": "bilinear"},
        {"norm": "batch", "encoding": "none", "precision": "double"},
        {"precision": "bfloat16"},
        {"model": "dgt-plus", "blocks": 2},
        {"model": "dgt-plus", "blocks": 2, "labels": "hide", "norm": "batch"},
    ],
    ids=["dgt", "dgt-light", "batch norm", "bfloat16", "dgt-plus", "dgt-plus hide"],
)
def test_traced_without_graph_breaks(settings: dict[str, Any]) -> None:
    assert compare("aot_eager", **settings) < 1e-6


@pytest.mark.slow
def test_dgt_on_cora_compiled_by_inductor() -> None:
    from dgt.data import load
    from dgt.data.files import normalize

    data, config = normalize(load("cora")), Config.of("dgt")
    inputs = prepare(data, config)
    torch.manual_seed(0)
    model = build(config, data.num_features, 7, inputs["encoding"].size(1))
    pairs = list(zip(*(step(model, inputs, way) for way in (None, "inductor")), strict=True))
    for eager, found in pairs:
        torch.testing.assert_close(found, eager, rtol=1e-5, atol=1e-5 * float(eager.abs().max()))


def test_dropout_draws_a_new_seed_in_every_call() -> None:
    """Compilers merge equal operators without inputs, which would make all masks equal."""
    from dgt.ops.dropout import dropout

    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        return dropout(x, 0.5), dropout(x, 0.5)

    x = torch.ones(1000)
    torch._dynamo.reset()
    run = torch.compile(twice, fullgraph=True, backend="aot_eager")
    torch.manual_seed(3)
    expected = twice(x)
    torch.manual_seed(3)
    found = run(x)
    assert not torch.equal(*found)
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a, b)


def test_training_with_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_, calls = torch.compile, []

    def traced(model: Any, **options: Any) -> Any:
        calls.append(options)
        return compile_(model, backend="aot_eager", **options)

    monkeypatch.setattr(torch, "compile", traced)
    torch._dynamo.reset()
    settings = {"epochs": 5, "hidden_channels": 16, "length": 8, "device": "cpu"}
    eager = NodeClassifier(**settings).fit(block_graph())
    compiled = NodeClassifier(**settings, compile=True).fit(block_graph())
    assert calls == [{"fullgraph": True}]
    assert compiled.history_ == eager.history_
    assert compiled.model_.state_dict().keys() == eager.model_.state_dict().keys()


def test_unsupported_settings() -> None:
    with pytest.raises(
        InputError, match="compile: only dgt, dgt-light and dgt-plus support it, got model g"
    ):
        Config.of("gcn").replace(compile=True)
    with pytest.raises(InputError, match="compile: not supported with batch_size or chunk_size"):
        Config.of("dgt").replace(compile=True, chunk_size=10)
