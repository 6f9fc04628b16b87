"""Mixed precision: activations in bfloat16; weights, gradients and logits in float32."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dgt import NodeClassifier
from dgt.config import Config
from dgt.data.labels import label_columns
from dgt.models import MODELS, build
from dgt.prepare import prepare
from dgt.training.steps import step, steps_for
from dgt.training.task import Classification
from tests.small import QUICK, block_graph

CPU = torch.device("cpu")


def first_step(precision: str, model: str = "dgt", **settings: Any) -> tuple[nn.Module, Tensor]:
    """Returns the model after a training step, and the loss; weights and dropout are the same for
    every precision."""
    data = block_graph(nodes=300)
    config = Config.of(model).replace(precision=precision, hidden_channels=32, **settings)
    inputs = prepare(data, config, known=label_columns(data.y, 3))
    encoding = inputs.get("encoding")
    torch.manual_seed(0)
    network = build(config, data.num_features, 3, 0 if encoding is None else encoding.size(1))
    network.train()
    steps = steps_for(config, inputs, CPU)
    torch.manual_seed(1)
    loss, logits = step(network, steps, Classification(3), torch.arange(0, 300, 2), data.y)
    assert logits.dtype == torch.float32
    return network, loss


def relative_error(gradients: list[Tensor], exact: list[Tensor]) -> float:
    found, wanted = (torch.cat([g.flatten() for g in each]) for each in (gradients, exact))
    return float((found - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("model", MODELS)
def test_a_step_of_every_model_is_close_to_single_precision(model: str) -> None:
    results = []
    for precision in ("single", "bfloat16"):
        network, loss = first_step(precision, model)
        weights = dict(network.named_parameters())
        gradients = [w.grad for w in weights.values() if w.grad is not None]
        assert len(gradients) == len(weights)
        assert {w.dtype for w in [*weights.values(), *gradients]} == {torch.float32}
        results.append((loss, gradients))
    (exact_loss, exact), (loss, gradients) = results
    assert loss != exact_loss
    torch.testing.assert_close(loss, exact_loss, rtol=5e-3, atol=0)
    assert relative_error(gradients, exact) < 0.05


@pytest.mark.parametrize("norm", ["layer", "batch", "none"])
def test_every_norm(norm: str) -> None:
    (exact, exact_loss), (found, loss) = (first_step(p, norm=norm) for p in ("single", "bfloat16"))
    torch.testing.assert_close(loss, exact_loss, rtol=5e-3, atol=0)
    for name, buffer in exact.named_buffers():
        torch.testing.assert_close(found.get_buffer(name), buffer, rtol=1e-2, atol=5e-3)


@pytest.mark.parametrize("sizes", [{"chunk_size": 64}, {"chunk_size": 1000}])
@pytest.mark.parametrize("model", ["dgt", "dgt-plus"])
def test_chunks_compute_the_same_step(model: str, sizes: dict[str, int]) -> None:
    (whole, loss), (chunked, same) = (
        first_step("bfloat16", model, blocks=2, **each) for each in ({}, sizes)
    )
    torch.testing.assert_close(loss, same, rtol=2e-3, atol=0)
    grads = [[w.grad for w in network.parameters()] for network in (whole, chunked)]
    assert relative_error(*grads) < 0.03


def saved_bytes(precision: str, **settings: Any) -> int:
    """Returns the size of all activations that a forward pass keeps for the backward pass."""
    data = block_graph(nodes=2000)
    config = Config.of("dgt").replace(precision=precision, **settings)
    inputs = prepare(data, config)
    network = build(config, data.num_features, 3, inputs["encoding"].size(1)).train()
    storages: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        logits = network(**inputs)
    known = [*network.parameters(), *(x for x in inputs.values() if x.layout == torch.strided)]
    for x in known:
        storages.pop(x.untyped_storage().data_ptr(), None)
    assert logits.requires_grad
    return sum(storages.values())


@pytest.mark.parametrize("settings", [{}, {"value_dropout": 0.5, "blocks": 2}])
def test_activations_take_about_half_the_memory(settings: dict[str, Any]) -> None:
    assert saved_bytes("bfloat16", **settings) < 0.6 * saved_bytes("single", **settings)


def test_a_saved_run_predicts_and_explains_as_before(tmp_path) -> None:
    data = block_graph()
    settings = {**QUICK, "precision": "bfloat16", "device": "cpu", "batch_size": 32}
    fitted = NodeClassifier(**settings).fit(data, out=tmp_path / "run")
    assert fitted.score() > 0.7
    loaded = NodeClassifier.load(tmp_path / "run")
    assert torch.equal(loaded.predict_proba(data), fitted.predict_proba())
    assert loaded.explain(3, data=data) == fitted.explain(3)
    assert {w.dtype for w in loaded.model_.state_dict().values()} == {torch.float32}
    assert fitted.multiply_adds() == NodeClassifier(**QUICK).fit(data).multiply_adds()
