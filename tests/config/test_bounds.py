"""Every numeric setting and option has bounds, whichever way it is given."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from dgt import Config, InputError, NodeClassifier
from dgt.cli import main
from dgt.config import FIELDS, PARTS, TABLES, read_toml

NUMBERS = {
    name: kind
    for name, field in FIELDS.items()
    for kind in (get_args(field.type) or (field.type,))
    if kind in (int, float)
}
TEXTS = [name for name in FIELDS if name not in NUMBERS and FIELDS[name].type is not bool]
COLUMNS = {"id", "label", "split_column", "source", "target", "weight"}
NO_NAMES = [3, 1.5, b"dgt", [], {}, np.array([1, 2]), torch.ones(2), "no such thing", ""]
UPPER = r"at most|below|between|from \d+ to|smaller"


def test_all_numbers_are_covered():
    assert len(NUMBERS) > 30
    assert {"lr", "keys", "katz_order", "length", "split", "blocks", "seed"} <= set(NUMBERS)


@pytest.mark.parametrize("name", NUMBERS)
def test_large_numbers(name: str, tmp_path: Path, capsys):
    huge = 10**30 if NUMBERS[name] is int else 1e300
    with pytest.raises(InputError, match=rf"{name}: .*({UPPER})"):
        NodeClassifier(**{name: huge})
    with pytest.raises(InputError, match=rf"{name}: .*({UPPER})"):
        PARTS[TABLES[name]](**{name: huge})
    path = tmp_path / "settings.toml"
    path.write_text(f"[{TABLES[name]}]\n{name} = {huge!r}\n")
    with pytest.raises(InputError, match=rf"settings: \[{TABLES[name]}\] {name}: .*({UPPER})"):
        Config.from_dict(read_toml(path))
    flag = f"--{name.replace('_', '-')}"
    for tokens in ([flag, str(huge)], ["--config", str(path)]):
        capsys.readouterr()
        assert main(["train", "cora", *tokens]) == 2
        message = capsys.readouterr().err
        assert name in message.replace("-", "_")
        assert message.count("\n") == 1


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value", [-1, float("nan"), float("inf"), -float("inf"), True, "x", [1], {}, 10**400, 1j]
)
def test_values_that_are_no_such_number(name: str, value: object):
    for make in (NodeClassifier, PARTS[TABLES[name]]):
        with pytest.raises(InputError, match=rf"{name}: "):
            make(**{name: value})


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("value", NO_NAMES)
def test_values_that_are_no_such_name(name: str, value: object):
    if name in COLUMNS and isinstance(value, str) and value:
        assert getattr(PARTS["data"](**{name: value}), name) == value  # columns may have any name
        return
    for make in (NodeClassifier, PARTS[TABLES[name]]):
        with pytest.raises(InputError, match=rf"{name}: "):
            make(**{name: value})


def test_numbers_of_numpy():
    config = Config().replace(length=np.int64(8), lr=np.float32(0.5), seed=np.uint8(3))
    assert config == Config().replace(length=8, lr=0.5, seed=3)
    assert type(config.sequences.length) is int
    with pytest.raises(InputError, match="length: expected int, got"):
        Config().replace(length=np.float64(8))


@pytest.mark.parametrize("given", [{"lr": 1}, "dgt", Config, 3, [Config()]])
def test_settings_of_another_kind(given: Any):
    with pytest.raises(InputError, match=r"config: got .*, expected a Config; pass single"):
        NodeClassifier(given)


@pytest.mark.parametrize(
    "content",
    [
        "a = " + "[" * 5000,
        "a = " + "{a=" * 5000,
        f"[train]\nepochs = {'9' * 10_000}\n",
        "[sequences]\ncriteria = []\n",
        "[train]\nlr = 1\nlr = 2\n",
        "\x00",
    ],
)
def test_files_of_settings_that_cannot_be_read(content: str, tmp_path: Path, capsys):
    path = tmp_path / "settings.toml"
    path.write_text(content)
    assert main(["train", "cora", "--config", str(path)]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {path}: ")
    assert message.count("\n") == 1
    assert len(message) < 1200


OPTIONS = [
    ("train", "--runs"),
    ("train", "--threads"),
    ("prepare", "--threads"),
    ("predict", "--threads"),
    ("explain", "--top"),
    ("explain", "--threads"),
    ("reproduce", "--verify"),
    ("tune", "--trials"),
    ("tune", "--runs"),
    ("tune", "--final-runs"),
    ("tune", "--workers"),
    ("reproduce", "--runs"),
    ("reproduce", "--workers"),
]


def test_all_options_are_covered():
    from dgt.cli.app import app

    found = {
        (command, argument.name)
        for command in ("train", "prepare", "predict", "explain", "tune", "reproduce", "info")
        for argument in app[command].assemble_argument_collection()
        if int in (argument.hint, *get_args(argument.hint))
        and argument.name.removeprefix("--").replace("-", "_") not in FIELDS
    }
    assert found == set(OPTIONS)


@pytest.mark.parametrize(("command", "option"), OPTIONS)
@pytest.mark.parametrize("value", ["100000000", "0", "-3", "1.5", "9" * 5000, "", "x"])
def test_numbers_of_options(command: str, option: str, value: str, capsys, tmp_path, monkeypatch):
    if (option, value) == ("--final-runs", "0"):
        pytest.skip("0 leaves out the final comparison")
    monkeypatch.chdir(tmp_path)
    place = {"explain": ["run", "n0"], "predict": ["run", "--out=p.csv"], "reproduce": ["table1"]}
    assert main([command, *place.get(command, ["cora"]), f"{option}={value}"]) == 2
    message = capsys.readouterr().err
    assert option in message
    assert message.count("\n") == 1
    assert len(message) < 1200
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["", "x" * 300, "a/" + "ä" * 200 + "/b"])
@pytest.mark.parametrize("option", ["GRAPH", "--out", "--config"])
def test_values_that_are_no_paths(option: str, value: str, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokens = [value] if option == "GRAPH" else ["cora", f"{option}={value}"]
    assert main(["train", *tokens]) == 2
    assert capsys.readouterr().err.startswith(f"error: {option}: got {value[:9]!r}"[:22])
    assert main(["train", *(token + "\0" for token in tokens)]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("graph", ["a\nb", "\u202e", "x" * 5000, "a\0b", "\udc80"])
def test_messages_are_one_printable_line(graph: str, capsys):
    assert main(["info", graph]) == 2
    message = capsys.readouterr().err
    assert message[:-1].isprintable()
    assert len(message) < 1200
