import dataclasses
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgt.config import (
    CRITERIA,
    FIELDS,
    MODELS,
    PARTS,
    TABLES,
    Config,
    ModelConfig,
    presets,
    read_preset,
    read_toml,
)
from dgt.errors import InputError

settings = st.fixed_dictionaries(
    {},
    optional={
        "criteria": st.lists(st.sampled_from(list(CRITERIA)), min_size=1, unique=True).map(tuple),
        "length": st.integers(1, 10**5),
        "ppr_tolerance": st.floats(1e-12, 1.0),
        "encoding": st.sampled_from(["katz", "none"]),
        "katz_scaling": st.sampled_from(["sum", "l2", "none"]),
        "heads": st.sampled_from([1, 2, 8]),
        "normalize": st.booleans(),
        "dropout": st.floats(0, 1, exclude_max=True),
        "lr": st.floats(1e-300, 1000),
        "seed": st.integers(0, 2**32 - 1),
        "split": st.none() | st.integers(0, 1000),
    },
)


@given(settings)
def test_toml_there_and_back(values):
    config = Config().replace(**values)
    text = config.to_toml()
    assert Config.from_dict(tomllib.loads(text)) == config
    for name, value in values.items():
        assert getattr(getattr(config, TABLES[name]), name) == value


def test_names_are_unique_so_that_each_can_be_a_flag():
    names = [f.name for part in PARTS.values() for f in dataclasses.fields(part)]
    assert len(names) == len(set(names))
    assert {*PARTS, "explicit"} == {f.name for f in dataclasses.fields(Config)}


def test_the_model_decides_the_criteria_unless_they_are_given():
    assert Config().criteria == ("alike", "neighbors", "ppr", "similarity")
    assert Config.of("dgt").criteria == ("bfs", "ppr", "similarity")
    assert Config().replace(model="dgt-light").criteria == ("bfs",)
    assert Config().replace(model="dgt-light", criteria=["ppr"]).criteria == ("ppr",)
    with pytest.raises(InputError, match="dgt-light takes one criterion, got bfs, ppr"):
        Config().replace(model="dgt-light", criteria=["bfs", "ppr"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"heads": 0}, "heads: got 0, expected at least 1"),
        ({"heads": 3}, "hidden_channels: got 64, expected a multiple of heads"),
        ({"heads": 2.0}, "heads: expected int, got 2.0"),
        ({"heads": True}, "heads: expected int, got True"),
        ({"normalize": 1}, "normalize: expected bool, got 1"),
        ({"lr": "fast"}, "lr: expected float, got 'fast'"),
        ({"lr": float("nan")}, "lr: got nan, expected above 0"),
        ({"gamma": float("inf")}, "gamma: got inf"),
        ({"dropout": 1}, "dropout: got 1.0, expected at least 0 and below 1"),
        ({"seed": -1}, "seed: got -1"),
        ({"seed": 2**32}, r"seed: got 4294967296, expected at least 0 and below 2\*\*32"),
        ({"seed": 2**63}, "seed: got 9223372036854775808"),
        ({"criteria": "bfs"}, "criteria: expected a list of names, got 'bfs'"),
        ({"criteria": []}, "criteria: .* expected at least one"),
        ({"criteria": ["dfs"]}, "unknown criterion 'dfs'; did you mean 'bfs'"),
        ({"norm": "group"}, "norm: 'group' is not one of layer, batch, none"),
        ({"norm": None}, "norm: None is not one of"),
        ({"epochs": None}, "epochs: expected int, got None"),
        ({"epoch": 3}, "unknown setting 'epoch'; did you mean 'epochs'"),
    ],
)
def test_values_that_make_no_sense(values, message: str):
    with pytest.raises(InputError, match=message):
        Config().replace(**values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[trian]\nlr = 1", r"here: unknown table \[trian\]; did you mean 'train'"),
        ("train = 3", r"here: \[train\] must be a table, got 3"),
        ("[train]\nrl = 1", r"here: \[train\] unknown setting 'rl'; .*'lr'"),
        ("[train]\nheads = 4", r"here: \[train\] unknown setting 'heads'; it belongs to \[model\]"),
        ("[train]\nlr = -1", r"here: \[train\] lr: got -1.0, expected above 0"),
        ("[train]\nlr = []", r"here: \[train\] lr: expected float, got \[\]"),
    ],
)
def test_mistakes_in_a_file_name_their_place(text: str, message: str):
    with pytest.raises(InputError, match=message):
        Config.from_dict(tomllib.loads(text), "here")


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(InputError, match="expected a regular file"):
        read_toml(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'x = "\xe9"')
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_toml(tmp_path / "latin.toml")


def test_a_preset_that_is_missing():
    """The message names what comes closest, and not all of the presets."""
    with pytest.raises(InputError) as raised:
        read_preset("own-graph", "dgt-plus")
    text = str(raised.value)
    assert text.startswith("preset: found none for dgt-plus on own-graph; leave out --preset to ")
    graphs = text.split("dgt-plus has presets for ")[1].split(", ")
    assert {f"{graph}-dgt-plus" for graph in graphs} == {
        name for name in presets() if name.endswith("-dgt-plus")
    }
    with pytest.raises(InputError, match=r"dgt has presets for chameleon"):
        read_preset("chamelion", "dgt")
    with pytest.raises(InputError, match=r"there are presets for actor, chameleon, .*reddit"):
        read_preset("own-graph", "transformer")
    without = next(model for model in MODELS if f"chameleon-{model}" not in presets())
    with pytest.raises(
        InputError,
        match=rf"{without} on chameleon; leave out --preset .*, such as --model dgt-plus: [a-z]+",
    ):
        read_preset("chameleon", without)


NUMBERS = [
    name for name, field in FIELDS.items() if field.type in (int, float, int | None, float | None)
]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_an_upper_bound(name: str) -> None:
    huge = 10**30 if FIELDS[name].type in (int, int | None) else 1e30
    with pytest.raises(InputError, match=rf"^{name}: got 1.*0, expected .*(at most|below|and 1)"):
        Config().replace(**{name: huge})


@pytest.mark.parametrize(
    ("name", "most"),
    [("length", 100_000), ("katz_order", 100), ("keys", 1024), ("blocks", 1000), ("lr", 1000)],
)
def test_the_bound_itself_is_allowed(name: str, most: int) -> None:
    assert Config().replace(**{name: most}).flat()[name] == most
    message = rf"^{name}: got {most + 1}(\.0)?, expected (above 0|at least 1) and at most {most}$"
    with pytest.raises(InputError, match=message):
        Config().replace(**{name: most + 1})


@pytest.mark.parametrize("model", ["dgt", "dgt-light", "gcn"])
def test_labels_are_refused_for_a_model_that_does_not_use_them(model: str) -> None:
    wanted = rf"labels: got 'hide', which only dgt-plus can use, got model {model}"
    for make in (
        lambda: Config.of(model).replace(labels="hide"),
        lambda: Config().replace(labels="hide", model=model),
        lambda: Config.from_dict({"model": {"model": model, "labels": "hide"}}),
        lambda: Config(model=ModelConfig(model=model, labels="hide")),
    ):
        with pytest.raises(InputError, match=wanted):
            make()
    assert Config.of(model).replace(labels="none") == Config.of(model)
    assert Config().replace(model=model).model.labels == "none"
    assert Config().replace(labels="hide").model.labels == "hide"
    # Older versions accepted it, and complete settings of their runs can still be read.
    tables = Config.of(model).to_dict()
    tables["model"]["labels"] = "hide"
    assert Config.from_dict(tables) == Config.of(model)
