"""The inputs of a model follow the settings."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from dgt.config import Config, EncodingConfig, ModelConfig, SequenceConfig
from dgt.encodings import choose_anchors, katz
from dgt.models import build
from dgt.prepare import prepare
from dgt.sequences import node_sequences
from tests.small import block_graph


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DGT_CACHE", str(tmp_path))
    return tmp_path


def test_inputs_follow_the_settings(folder: Path) -> None:
    data = block_graph()
    config = Config(
        model=ModelConfig(model="dgt"),
        sequences=SequenceConfig(criteria=("ppr", "similarity"), length=9, ppr_alpha=0.3),
        encoding=EncodingConfig(katz_order=3, katz_beta=0.2, katz_scaling="sum", anchors=10),
    )
    inputs = prepare(data, config)
    assert set(inputs) == {"x", "sequences", "encoding"}
    assert torch.equal(inputs["x"], data.x)
    assert torch.equal(
        inputs["sequences"], node_sequences(data, ("ppr", "similarity"), 9, ppr_alpha=0.3)
    )
    anchors = choose_anchors(data.edge_index, 90, 10)
    columns = katz(data.edge_index, 90, order=3, beta=0.2, scaling="sum", anchors=anchors)
    assert torch.equal(inputs["encoding"].to_dense(), columns.to_dense())
    assert len(list(folder.rglob("*.npy"))) == 2


def test_given_anchors_and_no_encoding() -> None:
    data = block_graph()
    anchors = torch.tensor([4, -1, 2])
    inputs = prepare(data, Config(model=ModelConfig(model="dgt-light")), anchors=anchors)
    assert inputs["sequences"].shape == (1, 90, Config.of("dgt").sequences.length)
    columns = inputs["encoding"].to_dense()
    assert columns.shape == (90, 3)
    assert (columns[:, 1] == 0).all()
    assert (columns[:, 0] > 0).any()
    assert prepare(data, Config(encoding=EncodingConfig(encoding="none")))["encoding"] is None


@pytest.mark.parametrize(
    ("share", "width", "sparse"), [(0.05, 200, True), (0.05, 20, False), (0.5, 200, False)]
)
def test_wide_features_with_few_values_become_sparse(
    share: float, width: int, sparse: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(90, width, generator=generator, dtype=torch.float64)
    x[torch.rand(90, width, generator=generator) > share] = 0
    data = Data(x=x, edge_index=block_graph().edge_index)
    for form in (x, x.to_sparse_coo()):
        data.x = form
        result = prepare(data, Config.of("dgt"))["x"]
        assert (result.layout == torch.sparse_csr) == sparse
        assert result.dtype == torch.float32
        assert torch.equal(result.to_dense(), x.float())


@pytest.mark.parametrize("share", [0.02, 0.5])
@pytest.mark.parametrize(("scaling", "norm"), [("sum", 1), ("l2", 2)])
def test_features_can_be_scaled_by_row(share: float, scaling: str, norm: int) -> None:
    data = block_graph()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(data.num_nodes, 100)) * (rng.random((data.num_nodes, 100)) < share)
    x[0] = 0
    data.x = torch.from_numpy(x).float()
    found = prepare(data, Config.of("dgt").replace(feature_scaling=scaling))["x"]
    found = found.to_dense()
    sizes = found.norm(p=norm, dim=1)
    torch.testing.assert_close(sizes[data.x.any(dim=1)], torch.ones(int(data.x.any(1).sum())))
    assert sizes[0] == 0
    torch.testing.assert_close(found * data.x.norm(p=norm, dim=1, keepdim=True), data.x)


@pytest.mark.parametrize("model", ["dgt", "gcn", "graphormer", "deformable-gcn"])
def test_precision_applies_to_inputs_weights_and_logits(model: str) -> None:
    data, config = block_graph(), Config.of(model)
    inputs = [prepare(data, config.replace(precision=p)) for p in ("single", "double")]
    logits = []
    for given, precision in zip(inputs, ("single", "double"), strict=True):
        torch.manual_seed(0)
        columns = 0 if given.get("encoding") is None else given["encoding"].size(1)
        network = build(config.replace(precision=precision), data.num_features, 3, columns)
        logits.append(network.eval()(**given, nodes=None))
    assert [x.dtype for x in logits] == [torch.float32, torch.float64]
    torch.testing.assert_close(logits[0].double(), logits[1], rtol=1e-4, atol=1e-5)
    for name, value in inputs[1].items():
        kind = inputs[0][name].dtype
        assert value.dtype == (torch.float64 if kind == torch.float32 else kind)
