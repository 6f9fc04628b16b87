"""Histograms on a terminal."""

import io

import networkx as nx
import torch
from rich.console import Console
from torch_geometric.data import Data

from dgt.report.histograms import degrees, histogram, labels
from tests.sequences.graphs import to_networkx
from tests.small import block_graph


def test_degrees_are_those_of_networkx():
    data = block_graph()
    found = degrees(data)
    expected = nx.degree_histogram(to_networkx(data))
    for name, nodes in found.items():
        low, _, high = name.partition(" to ")
        assert nodes == sum(expected[int(low) : int(high or low) + 1])
    assert sum(found.values()) == 90


def test_labels_are_counted_with_the_rest():
    y = torch.tensor([-1, -1, *(c for c in range(20) for _ in range(20 - c))])
    data = Data(y=y, class_names=[f"c{c}" for c in range(20)])
    found = labels(data)
    assert list(found)[:3] == ["c0", "c1", "c2"]
    assert found["c0"] == 20
    assert found["(5 other classes)"] == 5 + 4 + 3 + 2 + 1
    assert found["(no label)"] == 2
    assert sum(found.values()) == len(y)


def test_bars_are_proportional_and_names_are_no_markup():
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    console.print(histogram("label", {"[/red]a": 400, "b\x00": 100, "c": 1, "d": 0}, console))
    lines = out.getvalue().splitlines()[2:]
    assert [line.count("█") for line in lines[:4]] == [30, 8, 1, 0]
    assert lines[0].split()[:2] == ["[/red]a", "400"]
    assert "b␀" in lines[1]
