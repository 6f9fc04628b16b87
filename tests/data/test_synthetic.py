import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from dgt.cli import main
from dgt.data import files, load, short_name
from dgt.data.splits import choose
from dgt.data.synthetic import SIZES, parse, synthetic
from dgt.errors import InputError, MemoryNeeded
from dgt.runs.many import canonical

SMALL = "synthetic:nodes=3e3,edges=2e4,features=16,classes=4,homophily=0.7"


@pytest.mark.parametrize("homophily", [0, 0.25, 0.7, 1])
@pytest.mark.parametrize("classes", [2, 7])
def test_sizes_are_those_asked_for(homophily: float, classes: int) -> None:
    data = load(
        f"synthetic:nodes=1001,edges=8000,features=5,classes={classes},homophily={homophily}"
    )
    info = files.info(data)
    assert [info[k] for k in ("nodes", "edges", "features", "classes", "labelled")] == [
        1001,
        8000,
        5,
        classes,
        1001,
    ]
    assert info["homophily"] == pytest.approx(homophily, abs=1e-4)


def test_the_graph_is_in_normal_form_already() -> None:
    data = load(SMALL)
    again = files.normalize(data)
    assert (data.edge_index[0] != data.edge_index[1]).all()
    for key in ("x", "edge_index", "y"):
        assert torch.equal(data[key], again[key])
        assert data[key].dtype == again[key].dtype
    assert data.class_names == again.class_names
    assert data.name == again.name == SMALL


def test_the_seed_decides() -> None:
    first, same, other = (load(SMALL + seed) for seed in ("", ",seed=0", ",seed=1"))
    for key in ("x", "edge_index", "y"):
        assert torch.equal(first[key], same[key])
        assert first[key].shape != other[key].shape or not torch.equal(first[key], other[key])


def test_degrees_follow_a_power_law() -> None:
    def degrees(exponent: float) -> np.ndarray:
        data = load(f"synthetic:nodes=20000,edges=200000,features=1,exponent={exponent}")
        return np.sort(np.bincount(data.edge_index[0], minlength=20000))[::-1]

    for exponent in (2.5, 3.5):
        found = degrees(exponent)
        # The i-th largest degree is proportional to i ** (-1 / (exponent - 1)), except for
        # saturated hubs.
        ranks = np.arange(100, 5000)
        slope = np.polyfit(np.log(ranks), np.log(found[ranks - 1]), 1)[0]
        assert slope == pytest.approx(-1 / (exponent - 1), abs=0.06)


def test_degrees_and_classes_are_independent_of_the_number_of_a_node() -> None:
    data = load(SMALL)
    degrees = np.bincount(data.edge_index[0], minlength=3000)
    order = np.arange(3000)
    assert abs(np.corrcoef(order, degrees)[0, 1]) < 0.1
    assert abs(np.corrcoef(order, data.y)[0, 1]) < 0.1


def test_features_tell_the_class_and_not_too_well() -> None:
    data = load(SMALL)
    centers = torch.stack([data.x[:1500][data.y[:1500] == c].mean(0) for c in range(4)])
    guess = torch.cdist(data.x[1500:], centers).argmin(1)
    assert 0.6 < (guess == data.y[1500:]).float().mean() < 0.98


@pytest.mark.parametrize("edges", [1, 40, 153])
def test_few_edges_and_all_of_them(edges: int) -> None:
    # With 18 nodes in 3 classes, 45 of 153 pairs are inside a class: 5 / 17.
    data = load(f"synthetic:nodes=18,edges={edges},classes=3,homophily={5 / 17}")
    assert data.edge_index.size(1) == 2 * edges
    assert len(set(map(tuple, data.edge_index.t().tolist()))) == 2 * edges


def test_random_splits() -> None:
    chosen, kind = choose(load(SMALL), "auto", 0)
    assert kind == "random"
    shares = [chosen[f"{part}_mask"].float().mean() for part in ("train", "val", "test")]
    assert shares == pytest.approx([0.48, 0.32, 0.2], abs=0.01)


def test_the_benchmarks_sizes() -> None:
    assert {name: (r.nodes, r.edges) for name, r in SIZES.items()} == {
        "arxiv": (169_343, 1_166_243),
        "twitch": (168_114, 6_797_557),
        "reddit": (232_965, 11_606_919),
    }
    mixed = parse("synthetic:arxiv,seed=3,features=7")
    assert mixed == dataclasses.replace(SIZES["arxiv"], seed=3, features=7)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("arxvi", "got 'arxvi', expected one of arxiv, twitch, reddit, or parameters such as"),
        ("", "got '', expected one of arxiv"),
        ("nodes=100,arxiv", "got 'arxiv', expected one of"),
        ("nodes=100,edge=3", "unknown parameter 'edge'; did you mean 'edges'"),
        ("nodes=100,nodes=3", "nodes: given twice"),
        ("nodes=1.5", "nodes: got 1.5, expected a whole number such as 1000000 or 1e6"),
        ("nodes=many", "nodes: got many, expected a whole number"),
        ("nodes=inf", "nodes: got inf, expected a whole number"),
        ("nodes=5", "nodes: got 5, expected at least 6"),
        ("nodes=1e10", "nodes: got 10000000000, expected at most 2147483647"),
        ("edges=0", "edges: got 0, expected at least 1"),
        ("features=-3", "features: got -3, expected at least 1"),
        ("classes=1", "classes: got 1, expected at least 2"),
        ("nodes=30,edges=20,classes=11", "classes: got 11, expected at most 10, a third"),
        ("homophily=1.1", "homophily: got 1.1, expected from 0 to 1"),
        ("homophily=nan", "homophily: got nan, expected a number"),
        ("exponent=1", "exponent: got 1.0, expected above 1"),
        ("seed=-1", "seed: got -1, expected at least 0"),
        (
            "nodes=100,edges=4000,classes=10,homophily=0.5",
            "edges: got 4000, of which 2000 inside the classes, expected at most 450 there with "
            "100 nodes and 10 classes",
        ),
        ("nodes=100,edges=4000,classes=2,homophily=0", "of which 4000 between the classes"),
    ],
)
def test_mistakes(name: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        load(f"synthetic:{name}")
    assert str(error.value).startswith(f"synthetic:{name}: ")
    assert message in str(error.value)


def test_names_hold_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = "synthetic:nodes=300,edges=1500,classes=3,homophily=0.9"
    assert canonical(graph) == graph
    assert short_name(graph) == "synthetic-nodes=300-edges=1500-classes=3-homophily=0.9"
    assert main(["info", graph]) == 0
    assert main(["train", graph, "--epochs=5", "--quiet"]) == 0
    run = tmp_path / "runs" / f"{short_name(graph)}-1"
    assert main(["predict", str(run), "--out=predictions.csv", "--quiet"]) == 0
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 301
    assert main(["info", "synthetic:homophily=2"]) == 2
    assert "homophily: got 2.0, expected from 0 to 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "graph",
    ["nodes=2e9,edges=10", "features=1e7", "nodes=1e7,edges=1e12", "nodes=1e8,features=1e4"],
)
def test_graphs_that_do_not_fit_into_memory(graph: str) -> None:
    with pytest.raises(MemoryNeeded, match=r"needs [\d.,]+ [GT]B of memory, but this machine has"):
        synthetic(parse(f"synthetic:{graph}"))


@pytest.mark.parametrize("name", ["nodes", "edges", "features", "classes", "seed", "exponent"])
def test_every_parameter_has_an_upper_bound(name: str) -> None:
    with pytest.raises(InputError, match=rf"{name}: got .*, expected .*(at most|below)"):
        parse(f"synthetic:{name}=1e30")
