"""Criteria, encodings and models by name, built in and registered by users."""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from dgt import InputError, NodeClassifier, NodeSort
from dgt.cli import main
from dgt.config import Choices, Config, EncodingConfig, SequenceConfig
from dgt.encodings import ENCODINGS, Encoding
from dgt.models import MODELS, Model, builder
from dgt.prepare import carries_over, prepare
from dgt.sequences import CRITERIA, Criterion, node_sequences
from dgt.system.workers import share
from dgt.tune.space import full_space, search_space
from tests.small import QUICK, block_graph


def by_age(data: Data, length: int) -> torch.Tensor:
    """The base node, then the nodes closest in age."""
    gaps = (data.age[:, None] - data.age[None]).abs()
    gaps.fill_diagonal_(-1)
    return gaps.argsort(dim=1, stable=True)[:, :length]


def ages(data: Data) -> torch.Tensor:
    return torch.stack([data.age, data.age.square()], dim=1)


def graph() -> Data:
    data = block_graph()
    data.age = torch.arange(90).flip(0) * 1.5
    return data


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "cache"))
    yield
    for choices in (CRITERIA, ENCODINGS, MODELS):
        for name in choices.registered():
            del choices[name]


@pytest.mark.parametrize("choices", [CRITERIA, ENCODINGS, MODELS])
def test_every_built_in_name_has_a_record(choices: Choices) -> None:
    kind = {"criterion": Criterion, "encoding": Encoding, "model": Model}[choices.kind]
    assert all(isinstance(record, kind) for record in choices.values())
    assert list(choices)[: len(choices.built_in)] == list(choices.built_in)


def test_names_are_known_without_torch() -> None:
    code = (
        "import sys; from dgt.config import CRITERIA, ENCODINGS, MODELS, Config;"
        "assert 'bfs' in CRITERIA and 'katz' in ENCODINGS and 'gcn' in MODELS;"
        "Config().replace(criteria=['ppr'], lr=0.5).to_toml();"
        "sys.exit(any(name in sys.modules for name in ('torch', 'numba', 'scipy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_help_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    shown = capsys.readouterr().out.replace("│", " ").split()
    for choices in (CRITERIA, ENCODINGS, MODELS):
        for name in choices:
            assert {name, f"{name},", f"{name}."} & set(shown), name


def test_a_registered_criterion_works_like_a_built_in_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown criterion 'age'.*CRITERIA\['age'\] = "):
        Config().replace(criteria=["age"])
    CRITERIA["age"] = by_age
    data = graph()
    truth = by_age(data, 8).int()
    assert torch.equal(node_sequences(data, ["bfs", "age"], 8, cache=True)[1], truth)
    assert torch.equal(NodeSort(["age"], 8)(data.clone()).sequences[0], truth)
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == 1  # only bfs is cached
    config = Config().replace(criteria=["bfs", "age"], **QUICK)
    classifier = NodeClassifier(config).fit(data, out=tmp_path / "run")
    assert Config.from_dict(tomllib.loads(config.to_toml())) == config
    loaded = NodeClassifier.load(tmp_path / "run")
    assert torch.equal(loaded.predict_proba(data), classifier.predict_proba())


def test_functions_stand_where_names_do(tmp_path: Path) -> None:
    data = graph()
    classifier = NodeClassifier(criteria=["bfs", by_age], encoding=ages, **QUICK).fit(data)
    config = classifier.config
    assert config.criteria == ("bfs", by_age)
    assert classifier.facts_.encoding_channels == 2
    assert Config(sequences=SequenceConfig(criteria=(by_age,))).criteria == (by_age,)
    assert Config(encoding=EncodingConfig(encoding=ages)).encoding.encoding is ages
    assert config.to_dict()["sequences"]["criteria"] == ("bfs", "by_age")
    assert config.flat()["encoding"] == "ages"
    classifier.save(tmp_path)
    message = r"config.toml: \[sequences\] criteria: unknown criterion 'by_age'.*--import MODULE"
    with pytest.raises(InputError, match=message):
        NodeClassifier.load(tmp_path)
    CRITERIA["by_age"] = by_age
    with pytest.raises(InputError, match=r"\[encoding\] encoding: unknown encoding 'ages'"):
        NodeClassifier.load(tmp_path)
    ENCODINGS["ages"] = ages
    loaded = NodeClassifier.load(tmp_path)
    assert torch.equal(loaded.predict_proba(data), classifier.predict_proba())


def test_a_function_is_written_by_the_name_it_is_registered_under() -> None:
    CRITERIA["age"] = by_age
    assert Config().replace(criteria=[by_age]).to_dict()["sequences"]["criteria"] == ("age",)


def test_a_function_cannot_pass_for_another() -> None:
    def bfs(data: Data, length: int) -> torch.Tensor:
        return by_age(data, length)

    with pytest.raises(InputError, match="criteria: the function 'bfs' has the name of another"):
        Config().replace(criteria=[bfs])
    with pytest.raises(InputError, match="'bfs' is built in"):
        CRITERIA["bfs"] = bfs
    with pytest.raises(InputError, match="'katz' is built in and cannot be removed"):
        del ENCODINGS["katz"]
    with pytest.raises(InputError, match="got the name 'by age', expected at most 100 letters"):
        CRITERIA["by age"] = by_age
    with pytest.raises(InputError, match="expected the record of a model"):
        MODELS["mine"] = nn.Linear


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "gnc"}, "model: unknown model 'gnc'; did you mean .*'gcn'"),
        ({"model": nn.Linear}, "model: expected a name, got"),
        ({"encoding": "kats"}, "encoding: unknown encoding 'kats'; did you mean 'katz'"),
        ({"encoding": 3}, "encoding: expected a name or a function, got 3"),
        ({"criteria": ["bfs", 3]}, "criteria: expected a name or a function, got 3"),
    ],
)
def test_wrong_choices(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Config().replace(**settings)


def counted_ages(made: list[int]) -> Criterion:
    """A record that counts how often its sequences are computed."""

    def begin(graph, settings, folder):
        made.append(settings.length)
        truth = by_age(graph.data, settings.length).int().numpy()
        return lambda bases, advance: (truth[bases.start : bases.stop], None)

    return Criterion(begin=begin, reads=("age",), tuned=True)


def test_a_registered_record_is_never_cached() -> None:
    made: list[int] = []
    CRITERIA["age"] = counted_ages(made)
    assert "age" in full_space("dgt-light")["criteria"].choices
    for _ in range(2):
        node_sequences(graph(), ["age"], 8, cache=True)
    assert made == [8, 8]


def test_a_cached_record_goes_by_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    CRITERIA["age"] = counted_ages(made)
    data = graph()
    with monkeypatch.context() as as_built_in:
        as_built_in.setattr(CRITERIA, "built_in", (*CRITERIA.built_in, "age"))
        for _ in range(2):
            node_sequences(data, ["age"], 8, cache=True)
        assert made == [8]
        node_sequences(data, ["age"], 9, cache=True)
        data.age = data.age + torch.rand(90)
        assert torch.equal(node_sequences(data, ["age"], 9, cache=True)[0], by_age(data, 9).int())
    assert made == [8, 9, 9]


def test_an_encodings_record_says_where_it_carries_over() -> None:
    data, other = graph(), block_graph(nodes=60, seed=1)
    other.age = torch.arange(60) * 2.0
    classifier = NodeClassifier(encoding=ages, **QUICK).fit(data)
    assert carries_over(classifier.config) == "edges"
    with pytest.raises(InputError, match="not the graph that the model was trained on"):
        classifier.predict(other)
    ENCODINGS["ages"] = Encoding(columns=lambda data, settings, anchors: ages(data), tuned=True)
    config = Config.of("dgt").replace(encoding="ages", **QUICK)
    assert carries_over(config) == "always"
    assert NodeClassifier(config).fit(data).predict(other).shape == (60,)
    assert full_space("dgt")["encoding"].choices == ("katz", "none", "ages")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (np.ones((90,)), r"encoding wrong: returned shape \(90,\), expected \(90, columns\)"),
        (np.ones((89, 2)), r"returned shape \(89, 2\)"),
        (np.ones((90, 0)), r"returned shape \(90, 0\)"),
        (np.full((90, 1), "a"), "expected a tensor of numbers"),
        (torch.ones(90, 3) / 0, "row 0, column 0 is inf, expected a finite number"),
    ],
)
def test_an_own_encoding_is_checked(columns: object, message: str) -> None:
    def wrong(data: Data) -> object:
        return columns

    with pytest.raises(InputError, match=message):
        prepare(graph(), Config().replace(encoding=wrong))


class Linear(nn.Linear):
    def __init__(
        self, in_channels: int, hidden: int, classes: int, *, input_dropout: float
    ) -> None:
        super().__init__(in_channels, classes)

    def forward(self, x: torch.Tensor, *, nodes: torch.Tensor | None = None) -> torch.Tensor:
        return super().forward(x if nodes is None else x[nodes])


def test_a_model_is_added_by_its_record() -> None:
    MODELS["linear"] = Model(build=builder(Linear), inputs=("x",), defaults={"input_dropout": 0.0})
    classifier = NodeClassifier(model="linear", **QUICK).fit(block_graph())
    assert isinstance(classifier.model_, Linear)
    assert classifier.config.model.input_dropout == 0.0
    assert list(search_space(classifier.config)) == ["lr", "weight_decay"]
    with pytest.raises(InputError, match="batch_size: only dgt, dgt-light and dgt-plus support it"):
        Config.of("linear").replace(batch_size=10)


class Tied(Linear):
    """Two layers with the same weights."""

    def __init__(
        self, in_channels: int, hidden: int, classes: int, *, input_dropout: float
    ) -> None:
        super().__init__(in_channels, hidden, classes, input_dropout=input_dropout)
        self.same = nn.Linear(in_channels, classes)
        self.same.weight = self.weight

    def forward(self, x: torch.Tensor, *, nodes: torch.Tensor | None = None) -> torch.Tensor:
        return super().forward(x, nodes=nodes) + self.same(x if nodes is None else x[nodes])


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_an_own_model_may_tie_weights(average: float, tmp_path: Path) -> None:
    MODELS["tied"] = Model(build=builder(Tied), inputs=("x",))
    classifier = NodeClassifier(model="tied", average=average, **QUICK).fit(block_graph())
    model = classifier.model_
    assert model.same.weight is model.weight
    classifier.save(tmp_path / "run")
    again = NodeClassifier.load(tmp_path / "run")
    assert again.model_.same.weight is again.model_.weight
    assert torch.equal(again.predict(block_graph()), classifier.predict())


class Expanded(Linear):
    """A buffer whose values share memory."""

    def __init__(
        self, in_channels: int, hidden: int, classes: int, *, input_dropout: float
    ) -> None:
        super().__init__(in_channels, hidden, classes, input_dropout=input_dropout)
        self.register_buffer("ones", torch.ones(1).expand(classes))


def test_expanded_tensors_of_own_models_are_refused_before_training() -> None:
    MODELS["expanded"] = Model(build=builder(Expanded), inputs=("x",))
    with pytest.raises(InputError, match="model expanded: ones: an expanded tensor"):
        NodeClassifier(model="expanded", **QUICK).fit(block_graph())


def test_an_error_in_the_constructor_of_an_own_model_names_its_line() -> None:
    class Wrong(Linear):
        def __init__(self, *channels: int, input_dropout: float) -> None:
            raise KeyError("wrong")

    MODELS["wrong"] = Model(build=builder(Wrong), inputs=("x",))
    with pytest.raises(
        InputError, match=r"failed in __init__, .*test_choices\.py, line .*KeyError"
    ):
        NodeClassifier(model="wrong", **QUICK).fit(block_graph())


def known(name: str) -> bool:
    return name in CRITERIA


def test_other_processes_know_what_was_registered() -> None:
    CRITERIA["age"] = by_age
    CRITERIA["passing"] = lambda data, length: None  # cannot be pickled
    found = dict(share(known, ["age", "passing", "bfs"], workers=1))
    assert found == {"age": True, "passing": False, "bfs": True}
