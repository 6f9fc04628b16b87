"""Modules and functions have the same defaults as the settings."""

import inspect
from typing import Any

import pytest

from dgt import DGT, Katz, NodeClassifier, NodeSort, baselines
from dgt.config import (
    DEFAULT_CRITERIA,
    DEFAULT_MODEL,
    DEFAULT_SETTINGS,
    FIELDS,
    Config,
    EncodingConfig,
    ModelConfig,
    SequenceConfig,
    TrainConfig,
    own_defaults,
)
from dgt.config.choices import MODELS
from dgt.encodings import katz, laplacian, node2vec
from dgt.nn import DGTLight, Kernel
from dgt.sequences import node_sequences

# Each module or function, the prefix of its settings, and the model whose defaults they are.
SUBJECTS: list[tuple[Any, str, str]] = [
    (Kernel, "", "dgt"),
    (NodeSort, "", "dgt"),
    (node_sequences, "", "dgt"),
    (Katz, "katz_", "dgt"),
    (katz, "katz_", "dgt"),
    (laplacian, "laplacian_", "dgt"),
    (node2vec, "node2vec_", "dgt"),
    (DGT, "", "dgt"),
    (DGTLight, "", "dgt-light"),
    (baselines.MLP, "", "mlp"),
    (baselines.GCN, "", "gcn"),
    (baselines.GAT, "", "gat"),
    (baselines.GATv2, "", "gatv2"),
    (baselines.GraphSAGE, "", "graphsage"),
    (baselines.SGC, "", "sgc"),
    (baselines.JKNet, "", "jknet"),
    (baselines.MixHop, "", "mixhop"),
    (baselines.GeomGCN, "", "geom-gcn"),
    (baselines.H2GCN, "", "h2gcn"),
    (baselines.DeformableGCN, "", "deformable-gcn"),
    (baselines.Transformer, "", "transformer"),
    (baselines.Graphormer, "", "graphormer"),
    (baselines.GTFull, "", "gt-full"),
    (baselines.GTSparse, "", "gt-sparse"),
]


def arguments(subject: Any) -> dict[str, inspect.Parameter]:
    """The arguments by name, with those that a class passes on to its parent as ``**settings``."""
    found = dict(inspect.signature(subject).parameters)
    if any(argument.kind is argument.VAR_KEYWORD for argument in found.values()):
        found = arguments(subject.__base__) | found
    return found


@pytest.mark.parametrize(("subject", "prefix", "model"), SUBJECTS)
def test_arguments_have_the_defaults_of_their_settings(
    subject: Any, prefix: str, model: str
) -> None:
    settings = Config.of(model).flat() | {"criteria": DEFAULT_CRITERIA}
    compared = 0
    for argument in arguments(subject).values():
        name = {"k": "columns"}.get(argument.name, argument.name)
        setting = f"{prefix}{name}" if f"{prefix}{name}" in FIELDS else name
        if setting == "criteria" and subject in (DGT, DGTLight):
            continue  # their number, not their names
        if setting in FIELDS and argument.default is not inspect.Parameter.empty:
            assert argument.default == settings[setting], argument.name
            compared += 1
    assert compared > 0


@pytest.mark.parametrize("model", MODELS)
def test_another_model_brings_its_own_defaults(model: str) -> None:
    assert Config().replace(model=model) == Config.of(model)
    assert Config.of(model).replace(model="dgt") == Config.of("dgt")
    changed = Config().replace(dropout=0.25, lr=0.5, encoding="laplacian")
    found = changed.replace(model=model)
    assert (found.model.dropout, found.train.lr) == (0.25, 0.5)
    assert found.encoding.encoding == "laplacian"
    assert found == Config.of(model).replace(dropout=0.25, lr=0.5, encoding="laplacian")


def test_settings_without_a_model_are_those_of_the_default_model() -> None:
    plus = Config.of("dgt-plus")
    assert plus.model.model == DEFAULT_MODEL
    assert (plus.sequences.length, plus.model.labels, plus.encoding.encoding) == (
        32, "read", "degree",
    )  # fmt: skip
    assert MODELS[DEFAULT_MODEL].defaults == DEFAULT_SETTINGS
    for made in (Config(), Config.from_dict({}), Config.given(None), NodeClassifier().config):
        assert made == plus
        assert made.explicit == frozenset()
    assert Config.from_dict({"train": {"lr": 0.5}}) == plus.replace(lr=0.5)
    assert NodeClassifier(lr=0.5).config == plus.replace(lr=0.5)
    assert repr(NodeClassifier(lr=0.5)) == "NodeClassifier(lr=0.5)"
    assert repr(NodeClassifier(model="gcn")) == "NodeClassifier(model='gcn')"


def test_the_dataclasses_have_the_defaults_of_the_papers_model() -> None:
    parts = SequenceConfig(), EncodingConfig(), ModelConfig(), TrainConfig()
    sequences, encoding, model, train = parts
    made = Config(sequences=sequences, encoding=encoding, model=model, train=train)
    assert made == Config.of("dgt")
    assert (sequences.length, encoding.encoding, model.labels) == (16, "katz", "none")
    assert (model.node_dropout, train.key_weight_decay) == (0.5, 5e-4)


@pytest.mark.parametrize("model", MODELS)
def test_parts_that_are_not_given_have_the_defaults_of_the_model(model: str) -> None:
    own = Config.of(model)
    assert Config(model=own.model) == own
    assert Config(model=own.model, train=TrainConfig(lr=0.5)).sequences == own.sequences


def test_what_is_given_with_a_model_is_kept() -> None:
    dgts = Config.of("dgt").model.dropout
    assert own_defaults("gcn")["dropout"] != dgts
    assert Config().replace(model="gcn", dropout=dgts).model.dropout == dgts
    assert Config.of("gcn").replace(model="gcn") == Config.of("gcn")
