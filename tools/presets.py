"""Search the settings of several models on several graphs, with the same CPU time for each.

    python tools/presets.py --cpu-minutes 20 --write

One single-threaded worker per core trains graph after graph; the models of a graph share the
workers. Settings are chosen by validation nodes alone: workers never see the label of a test node.
The state of each search is in OUT/GRAPH-MODEL, where each finished run is recorded at once, so that
the same command continues after a kill, and does nothing where the time is used up. With --write,
the settings become presets of the package, in src/dgt/config/presets, if the time was enough for a
final comparison with the defaults and the earlier preset.
"""

import argparse
import tomllib
from pathlib import Path
from typing import Any

from dgt.config import Config, to_toml
from dgt.storage.files import write_text
from dgt.tune import search_models

GRAPHS = (
    *("actor", "squirrel", "chameleon", "cora", "citeseer", "squirrel-filtered"),
    *("chameleon-filtered", "minesweeper", "tolokers"),
)
MODELS = ("dgt", "dgt-light", "dgt-plus", "gcn", "graphsage", "mixhop", "gat", "h2gcn")
HOME = Path(__file__).resolve().parents[1] / "src" / "dgt" / "config" / "presets"
WIDTH = 100


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--cpu-minutes", type=float, required=True, help="per graph and model")
    parser.add_argument("--out", type=Path, default=Path("tune"))
    parser.add_argument("--workers", type=int, help="default: one per core")
    parser.add_argument("--runs", type=int, default=3, help="per trial")
    parser.add_argument("--final-runs", type=int, default=5, help="of the final comparison")
    parser.add_argument("--write", action="store_true", help="write the presets of the package")
    given = parser.parse_args()
    for graph in given.graphs:
        configs = {given.out / f"{graph}-{model}": Config.of(model) for model in given.models}
        results = search_models(
            graph,
            configs,
            cpu_minutes=given.cpu_minutes,
            runs=given.runs,
            final_runs=given.final_runs,
            workers=given.workers,
            progress=True,
        )
        for found in results:
            if "error" in found:
                print(f"{graph}-{found['model']}: {found['error']}", flush=True)
                continue
            print(f"{graph}-{found['model']}: {found['note']}", flush=True)
            if given.write and found["fresh"]:
                write_preset(graph, found, given.cpu_minutes, HOME)


def write_preset(graph: str, found: dict[str, Any], cpu_minutes: float, home: Path) -> None:
    """Writes the searched settings as a preset, or removes an earlier preset, which is one of the
    finalists, if the defaults are better.

    Args:
        graph: The graph.
        found: The result of a search.
        cpu_minutes: What it may have used.
        home: Folder of the presets.
    """
    path = home / f"{graph}-{found['model']}.toml"
    if not found["changed"]:
        path.unlink(missing_ok=True)
        return
    whole = tomllib.loads(Path(found["preset"]).read_text())
    names = {"model", *found["settings"]}
    kept = {
        table: {name: value for name, value in values.items() if name in names}
        for table, values in whole.items()
    }
    note = f"{found['note'].removesuffix('.')}, with {cpu_minutes:g} minutes of CPU time."
    write_text(path, comment(note) + to_toml({t: values for t, values in kept.items() if values}))


def comment(text: str) -> str:
    """Returns a text as lines that start with #."""
    lines, line = [], "#"
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = "#"
        line += f" {word}"
    return "\n".join([*lines, line]) + "\n"


if __name__ == "__main__":
    main()
