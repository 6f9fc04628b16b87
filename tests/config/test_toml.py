import tomllib

import pytest

from dgt.config import Config, to_toml
from dgt.runs.files import Settings, read_settings
from dgt.runs.folder import RunFolder
from dgt.tune.records import preset


@pytest.mark.parametrize("graph", ["cora", 'a "quoted" \\ path', "görlitz 🦔", "bell\x07 del\x7f"])
def test_any_text_comes_back(graph: str, tmp_path) -> None:
    settings = Settings(Config().replace(lr=1e-7, criteria=["ppr"]), graph, 3)
    RunFolder(tmp_path).write_settings(settings)
    assert read_settings(tmp_path) == settings


def test_values_come_before_tables() -> None:
    tables = {"a": {"x": 1}, "name": "n", "b": {"y": ["p", "q"], "z": True}}
    assert to_toml(tables) == 'name = "n"\n\n[a]\nx = 1\n\n[b]\ny = ["p", "q"]\nz = true\n'
    assert tomllib.loads(to_toml(tables)) == tables


def test_a_preset_has_all_settings_but_the_seed_and_the_splits() -> None:
    config = Config().replace(seed=3, split=1, lr=0.5)
    tables = tomllib.loads(preset(config))
    assert not {"seed", "split", "splits"} & set(tables["train"])
    assert Config.from_dict(tables) == config.replace(seed=0, split=None)
