"""The overview figure shows what the model does."""

from pathlib import Path

import numpy as np
import pytest

from dgt import NodeClassifier, load

TOOLS = Path(__file__).parents[2] / "tools" / "docs"

pytestmark = pytest.mark.skipif(not TOOLS.is_dir(), reason="needs the source folder")


def test_bars_are_attention_and_keys_start_evenly_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(TOOLS)
    import overview

    NodeClassifier(model="dgt", epochs=8, hidden_channels=16).fit(
        load("cora"), out=tmp_path / "run"
    )
    inside = overview.inspect(tmp_path / "run")
    node = overview.choose_node(inside, *overview.queries(inside))
    assert inside.data.test_mask[node]
    assert inside.predictions[node] == inside.y[node]
    figure = overview.draw(inside)
    axes = np.array(figure.axes).reshape(3, 2)
    for t, (before, after) in enumerate(axes):
        sequence = inside.inputs["sequences"][t, node].tolist()
        for axis in (before, after):
            assert [text.get_text() for text in axis.texts] == [str(each) for each in sequence]
        keys = np.concatenate([marks.get_offsets()[:, 0] for marks in before.collections[1:]])
        np.testing.assert_allclose(np.sort(keys), 15 * (np.arange(16) + 0.5) / 16, rtol=1e-5)
        # the model's own account of its attention, per criterion
        weights = np.zeros(inside.data.num_nodes)
        found = inside.model.attention(**inside.inputs, nodes=inside.y.new_tensor([node]))[t]
        for _, key, weight in found:
            np.add.at(weights, key.numpy(), weight.numpy())
        bars = np.array([bar.get_height() for bar in after.patches])
        np.testing.assert_allclose(bars / bars.sum(), weights[sequence] / weights.sum(), rtol=1e-4)
