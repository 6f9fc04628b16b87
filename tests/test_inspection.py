"""A look inside of a trained model, against its own last layer and its own methods."""

import pytest
import torch

from dgt.config import MODELS
from dgt.estimator import NodeClassifier
from tests.small import QUICK, block_graph

FEW = QUICK | {"epochs": 3}


@pytest.mark.parametrize("how", [{}, {"chunk_size": 40}, {"batch_size": 25}])
@pytest.mark.parametrize("blocks", [1, 2])
def test_representations_are_the_input_of_the_last_layer(how: dict[str, int], blocks: int):
    inside = NodeClassifier(blocks=blocks, **FEW, **how).fit(block_graph()).inspect()
    z = inside.representations()
    assert z.shape == (90, 16)
    with torch.no_grad():
        torch.testing.assert_close(inside.model.head[-1](z), inside.logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_model_has_representations(model: str):
    classifier = NodeClassifier(model=model, **FEW).fit(block_graph())
    inside = classifier.inspect()
    z = inside.representations()
    assert len(z) == 90
    assert z.isfinite().all()
    if model == "sgc":  # its only layer takes a sparse matrix, or these dense features
        assert z.size(1) in (3, 12)
    if model == "mlp":
        with torch.no_grad():
            torch.testing.assert_close(inside.model.layers[-1](z), inside.logits)
    assert torch.equal(inside.probabilities, classifier.predict_proba())
    assert inside.predictions.tolist() == classifier.predict().tolist()


def test_on_a_graph_that_is_passed():
    data = block_graph()
    classifier = NodeClassifier(**FEW).fit(data)
    again, own = classifier.inspect(data), classifier.inspect()
    assert torch.equal(again.logits, own.logits)
    assert again.explain(3, top=4) == classifier.explain(3, top=4)
    assert again.predicted_names == [str(c) for c in classifier.predict().tolist()]
    assert torch.equal(again.y, data.y)
