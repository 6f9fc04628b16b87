"""A run with several networks in the explorer and in a report."""

from pathlib import Path

import pytest
import torch

from dgt import NodeClassifier
from dgt.data import load
from dgt.explore.session import Session
from dgt.report.page import write_report
from tests.small import QUICK, block_graph, write_folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ensemble")
    graph = write_folder(folder / "graph", block_graph())
    data = load(str(graph))
    NodeClassifier(**QUICK, members=2).fit(data, out=folder / "run", graph=str(graph))
    return folder / "run"


def test_the_explorer_shows_the_first_network_and_says_so(
    run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    session = Session(run)
    assert "holds 2 networks; what follows is of the first one" in caplog.text
    both = session.classifier.model_
    with torch.no_grad():
        first = both.members[0](**session.inside.inputs)
    assert torch.equal(session.inside.logits, first)
    assert not torch.equal(session.inside.logits, both(**session.inside.inputs))


def test_a_report_says_what_is_of_the_first_network(run: Path) -> None:
    write_report([run], run / "report.html")
    text = (run / "report.html").read_text()
    assert "an ensemble of 2 networks" in text
