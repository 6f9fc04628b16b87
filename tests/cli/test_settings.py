"""How flags, files and defaults are combined into settings."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dgt.cli import main
from dgt.config import Config
from dgt.system import plugins
from dgt.system.notes import note_once
from tests.small import block_graph, flags, write_folder


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Replaces the search and records its settings."""
    seen: dict[str, object] = {}

    def stand_in(graph, configs, **rest):
        seen.clear()
        seen.update(rest, config=next(iter(configs.values())))
        return [{"model": "any", "error": "nothing was searched"}] * len(configs)

    monkeypatch.setattr("dgt.tune.search_models", stand_in)
    return seen


def test_settings_set_explicitly_are_not_searched_even_if_to_their_default(search, tmp_path: Path):
    assert main(["tune", "cora"]) == 0
    assert search["fixed"] == ()
    assert main(["tune", "cora", "--lr", "0.01", "--heads=4"]) == 0
    assert set(search["fixed"]) == {"lr", "heads"}
    file = tmp_path / "settings.toml"
    file.write_text("[model]\nblocks = 1\n[train]\nlr = 0.5\n")
    assert main(["tune", "cora", "--config", str(file), "--lr", "0.01"]) == 0
    assert set(search["fixed"]) == {"lr", "blocks"}
    assert search["config"].train.lr == 0.01
    # The settings of one command do not affect the next.
    assert main(["tune", "cora", "--no-normalize"]) == 0
    assert set(search["fixed"]) == {"normalize"}


def test_the_first_trials_keep_what_is_set_explicitly(search, tmp_path: Path):
    file = tmp_path / "earlier.toml"
    file.write_text('graph = "cora"\n[model]\nblocks = 2\nmodel = "gcn"\n[train]\nlr = 0.5\n')
    assert main(["tune", "cora", "--lr", "0.02", "--start", str(file)]) == 0
    (first,) = search["start"]
    assert (first.model.model, first.model.blocks, first.train.lr) == ("dgt-plus", 2, 0.02)


def test_there_is_no_hidden_flag(capsys):
    assert main(["tune", "cora", "--given", "lr"]) == 2
    assert "--given" in capsys.readouterr().err


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(plugins, "_loaded", {})
    path = tmp_path / "my_module.py"
    path.write_text("import sys\nprint('imported', file=sys.stderr)\n")
    yield path
    for name in ("my_module", "my_other_module"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "tokens",
    [
        ["train", "--import", "my_module", "nowhere"],
        ["prepare", "nowhere", "--import=my_module"],
        ["predict", "--import", "my_module", "nowhere", "--out", "p.csv"],
        ["explain", "nowhere", "n1", "--import", "my_module"],
        ["tune", "nowhere", "--import", "my_module", "--import", "json"],
    ],
)
def test_a_module_is_imported_and_takes_no_argument_away(own_module: Path, capsys, tokens):
    assert main(tokens) == 2
    note, error = capsys.readouterr().err.splitlines()
    assert note == "imported"
    assert error.startswith("error: nowhere: no such")
    assert plugins.loaded()[0] == "my_module"


def test_a_module_is_imported_before_settings_are_checked(
    own_module: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    assert main(["train", "nowhere", "--heads=x", "--import", "my_module"]) == 2
    assert capsys.readouterr().err.startswith("imported\nerror: ")
    # The names that it registers are valid in the same command.
    monkeypatch.setattr("dgt.cli.settings.own_defaults", lambda model: {})
    own_module.with_name("my_other_module.py").write_text(
        "import dgt.cli.settings\ndgt.cli.settings.own_defaults = lambda model: {'lr': -1.0}\n"
    )
    assert main(["train", "nowhere", "--import", "my_other_module"]) == 2
    assert "lr: got -1.0" in capsys.readouterr().err


def test_a_mistake_in_a_module_is_one_line(own_module: Path, capsys):
    assert main(["train", "cora", "--import", "no_module"]) == 2
    assert capsys.readouterr().err == (
        "error: --import: no module 'no_module' in the current folder or the installed packages\n"
    )
    own_module.write_text("\nundefined()\n")
    assert main(["train", "cora", "--import", "my_module"]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "my_module.py, line 2: NameError: name 'undefined' is not defined" in shown


@pytest.mark.parametrize("command", [["predict", "RUN", "--out", "p.csv"], ["explain", "RUN", "n"]])
def test_the_device_goes_to_the_classifier(command: list[str], monkeypatch: pytest.MonkeyPatch):
    seen = []

    def load(run, device=None):
        seen.append(device)
        raise KeyboardInterrupt

    monkeypatch.setattr("dgt.estimator.NodeClassifier.load", load)
    monkeypatch.setattr("dgt.estimator.load_estimator", load)
    assert main([*command, "--device", "cuda:1"]) == main(command) == 130
    assert seen == ["cuda:1", None]


def test_several_encodings_as_flag_and_in_a_file(tmp_path: Path) -> None:
    run, out = tmp_path / "run", ["--quiet", "--epochs", "1", "--hidden-channels", "8"]
    names = ["katz", "laplacian"]
    assert (
        main(["train", "cora", "--out", str(run), "--encoding", *names, "--length", "4", *out]) == 0
    )
    assert 'encoding = ["katz", "laplacian"]' in (run / "config.toml").read_text()
    assert main(["train", "cora", "--out", str(run), "--resume", "--quiet"]) == 0
    again = tmp_path / "again"
    config = tmp_path / "settings.toml"
    text = (run / "config.toml").read_text().splitlines()
    config.write_text("\n".join(line for line in text if not line.startswith("graph")))
    assert main(["train", "cora", "--out", str(again), "--config", str(config), "--quiet"]) == 0
    assert (again / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def test_a_file_of_another_model_than_the_flag_is_refused(tmp_path, capsys):
    file = tmp_path / "settings.toml"
    file.write_text('[model]\nmodel = "gcn"\nhidden_channels = 8\n')
    command = ["train", "cora", "--config", str(file), "--out", str(tmp_path / "run")]
    assert main([*command, "--model", "dgt"]) == 2
    assert "has the settings of model 'gcn', got --model dgt" in capsys.readouterr().err
    assert main([*command, "--model", "gcn", "--epochs", "1", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (
            ["--model=gcn", "--gamma=8"],
            "--gamma: got 8.0, which model gcn does not use",
        ),
        (
            ["--layers=3"],
            "which model dgt-plus does not use, expected one of the models mlp, gcn",
        ),
        (["--model=dgt", "--skip"], "--skip: got True, which model dgt does not use"),
        (["--model=mlp", "--key-weight-decay=3"], "one of the models dgt-light, dgt, dgt-plus"),
    ],
)
def test_flags_that_the_model_does_not_use_are_refused(tokens: list[str], message: str, capsys):
    for command in ("train", "tune", "prepare"):
        assert main([command, "cora", *tokens]) == 2
        assert message in capsys.readouterr().err


def test_settings_that_a_model_does_not_use_may_be_in_files_or_of_inputs(
    search, tmp_path: Path, caplog
):
    """Files of runs have all settings, and scripts give --length to all of several models."""
    file = tmp_path / "settings.toml"
    file.write_text(Config.of("gcn").replace(gamma=8.0, epochs=1).to_toml())
    command = ["train", "cora", "--config", str(file), "--out", str(tmp_path / "run"), "--quiet"]
    assert main([*command, "--katz-order=3", "--epochs=2"]) == 0
    assert "--katz-order: has no effect on gcn" in caplog.messages
    assert "gamma" not in caplog.text
    assert main(["train", "cora", "--out", str(tmp_path / "run"), "--resume", "--quiet"]) == 0
    for tokens, note in [
        (["--models", "dgt", "--sharpness=8"], "--sharpness: has no effect on dgt"),
        (
            ["--models", "dgt-plus", "--katz-order=3"],
            "--katz-order: has no effect on dgt-plus without --encoding katz",
        ),
        (["--models", "dgt-plus", "--katz-order=3", "--encoding", "degree", "katz-out"], None),
        (["--models", "dgt-plus", "--sharpness=8"], None),
        (
            ["--models", "dgt-plus", "--sharpness=9", "--criteria", "neighbors"],
            "--sharpness: has no effect on dgt-plus without --criteria alike or similarity",
        ),
        (["--models", "dgt-plus", "--sharpness=9", "--criteria", "alike-out"], None),
        (
            ["--models", "dgt", "--ppr-alpha=0.2", "--criteria", "bfs"],
            "--ppr-alpha: has no effect on dgt without --criteria ppr",
        ),
        (["--models", "dgt", "--ppr-alpha=0.2", "--criteria", "absolute-ppr"], None),
        (
            ["--models", "dgt", "--gamma=8", "--interpolation=bilinear"],
            "--gamma: has no effect on dgt without --interpolation rbf",
        ),
    ]:
        note_once.cache_clear()
        caplog.clear()
        assert main(["tune", "cora", *tokens]) == 0
        assert [text for text in caplog.messages if "no effect" in text] == ([note] if note else [])
    # one of the models uses it
    assert main(["tune", "cora", "--models", "gcn", "--layers=3"]) == 0
    assert main(["tune", "cora", "--models", "dgt", "--layers=3"]) == 2
    assert main(["tune", "cora", "--models", "gcn", "dgt", "--layers=3", "--gamma=2"]) == 0


def test_a_split_is_refused_if_there_is_only_one(tmp_path: Path, capsys):
    graph = write_folder(tmp_path / "colors", block_graph())
    rows = (graph / "nodes.csv").read_text().splitlines()
    parts = ["train", "val", "test"]
    split = [f"{row},{'' if n % 10 == 9 else parts[n // 3 % 3]}" for n, row in enumerate(rows[1:])]
    (graph / "nodes.csv").write_text("\n".join([f"{rows[0]},split", *split]) + "\n")
    command = ["train", str(graph), "--model=mlp", "--quiet", *flags(epochs=1)]
    assert main([*command, "--out", str(tmp_path / "one"), "--split=3"]) == 2
    assert (
        "colors has one split of its own, which has no number; leave out --split"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "one").exists()
    assert main(["tune", str(graph), "--split=3", "--out", str(tmp_path / "one")]) == 2
    assert "colors has one split of its own" in capsys.readouterr().err
    assert not (tmp_path / "one").exists()
    assert main([*command, "--out", str(tmp_path / "one"), "--split=3", "--splits=random"]) == 0
    # the settings of several runs have a split, whatever the graph
    assert main([*command, "--out", str(tmp_path / "two"), "--runs=2"]) == 0
    file = tmp_path / "settings.toml"
    file.write_text("[train]\nsplit = 1\n")
    assert main([*command, "--out", str(tmp_path / "again"), "--config", str(file)]) == 0
