"""The baselines on the command line."""

from pathlib import Path

import pytest

from dgt.cli import main
from dgt.config import Config, read_toml
from dgt.tune.space import search_space
from tests.small import block_graph, flags, write_folder


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("graph") / "colors", block_graph())


def test_a_run_has_the_defaults_of_its_model(graph: Path, tmp_path: Path):
    given = flags(model="gcn", epochs=2, input_dropout=0.25)
    assert main(["train", str(graph), "--out", str(tmp_path / "run"), "--quiet", *given]) == 0
    settings = read_toml(tmp_path / "run" / "config.toml")
    assert settings["encoding"]["encoding"] == "none"
    assert (settings["model"]["dropout"], settings["model"]["input_dropout"]) == (0.5, 0.25)
    out = tmp_path / "predictions.csv"
    assert main(["predict", str(tmp_path / "run"), str(graph), "--out", str(out), "--quiet"]) == 0
    assert len(out.read_text().splitlines()) == 91


def test_a_file_takes_precedence_over_model_defaults(graph: Path, tmp_path: Path, monkeypatch):
    seen: list[Config] = []
    monkeypatch.setattr(
        "dgt.runs.many.train_runs", lambda data, config, out, **_: seen.append(config)
    )
    monkeypatch.setattr("dgt.cli.train.show_metrics", lambda *_: None)
    path = tmp_path / "settings.toml"
    path.write_text('[model]\nmodel = "transformer"\ndropout = 0.25\n')
    assert main(["train", str(graph), "--config", str(path), "--encoding", "katz"]) == 0
    assert seen == [Config.of("transformer").replace(dropout=0.25, encoding="katz")]


def test_defaults_of_the_model_are_not_explicit(graph: Path, tmp_path: Path, monkeypatch):
    seen = {}

    def stand_in(graph, configs, **rest):
        seen.update(rest)
        return [{"error": "nothing was searched"}]

    monkeypatch.setattr("dgt.tune.search_models", stand_in)
    assert main(["tune", str(graph), "--model", "gat", "--heads", "1", "--json"]) == 0
    assert set(seen["fixed"]) == {"model", "heads"}


@pytest.mark.parametrize(("model", "grid"), [("gat", "paper"), ("sgc", None)])
def test_the_search_space_is_the_paper_s_grid(model: str, grid: str | None):
    space = search_space(Config.of(model), grid, fixed=("heads",))
    assert {name: values.choices for name, values in space.items()} == {
        "lr": (0.05, 0.01, 0.005),
        "weight_decay": (1e-3, 5e-4, 5e-5),
        "layers": (1, 2, 3, 4),
    }
