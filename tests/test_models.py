"""The memory of models, checked before they are built."""

import pytest
import torch

from dgt.config import MODELS, Config
from dgt.errors import MemoryNeeded
from dgt.models import build
from dgt.nn.record import Model


@pytest.mark.parametrize("model", ["dgt", "gcn"])
def test_models_of_absurd_size_are_refused(model: str):
    build(Config.of(model), 1433, 7, 0)
    wide = Config.of(model).replace(hidden_channels=65_536, heads=1)
    match = rf"{model} with [\d,]+ parameters needs [\d.]+ [GT]B of memory, but this machine has"
    with pytest.raises(MemoryNeeded, match=match):
        build(wide, 10**8, 10**4, 0)


def test_the_check_draws_no_random_numbers():
    config = Config.of("dgt")
    torch.manual_seed(0)
    expected = config.record.build(config, 12, 3, 0).state_dict()
    torch.manual_seed(0)
    for name, weight in build(config, 12, 3, 0).state_dict().items():
        assert torch.equal(weight, expected[name])


def test_a_model_that_cannot_be_built_without_data_is_not_refused(monkeypatch):
    def own(*_: object) -> torch.nn.Module:
        layer = torch.nn.Linear(2, 2)
        layer.weight.data = torch.full((2, 2), float(layer.weight.sum()))
        return layer

    monkeypatch.setitem(MODELS._entries, "own", Model(build=own, inputs=("x",)))
    assert build(Config.of("own"), 10, 2, 0).weight.shape == (2, 2)
