"""The comparison of several models after a search."""

import statistics
from typing import Any

import pytest

from dgt.tune.comparison import comparison


def result(model: str, chosen: list[float | None], defaults: list[float | None]) -> dict[str, Any]:
    """The result of a search with two runs, and three further ones."""
    finished = sum(value is not None for value in chosen[2:])
    final = [
        {"source": source, "by_run": by_run}
        for source, by_run in (("search", chosen), ("defaults", defaults))
    ]
    return {"model": model, "metric": "accuracy", "runs": 2, "trials": 7, "final": final,
            "final_runs": finished}  # fmt: skip


FIRST = result("gcn", [0.5, 0.7, 0.6, 0.8, 0.1], [0.4, 0.4, 0.5, 0.6, 0.1])
SHORT = result("mlp", [0.5, 0.5, 0.5, 0.7, None], [0.3, 0.4, 0.4, 0.4, None])


def test_models_are_compared_in_the_runs_that_all_have_finished():
    """The last run is hard, and only one model got to it."""
    alone = statistics.fmean([0.6, 0.8, 0.1])
    assert alone < 0.6  # it would make the better model the worse one
    sheet = comparison([SHORT, FIRST, {"model": "gat", "error": "no trial is complete"}])
    assert sheet.rows == [
        ("gcn", "70.00%", "14.14%", "55.00%", "2", "7"),
        ("mlp", "60.00%", "14.14%", "40.00%", "2", "7"),
        ("gat", "–", "–", "–", "–", "–"),
    ]
    assert sheet.notes[0] == (
        "Means of 2 further runs, the same for all models; other runs do not count here."
    )
    assert sheet.notes[1] == "gat: no trial is complete."
    assert "do not count" not in comparison([FIRST, FIRST]).notes[0]


def test_without_enough_further_runs_those_of_the_search_count():
    few = result("mlp", [0.9, 0.7, 0.5, None, None], [0.3, 0.4, None, None, None])
    sheet = comparison([FIRST, few])
    assert [row[:2] for row in sheet.rows] == [("mlp", "80.00%"), ("gcn", "60.00%")]
    assert sheet.notes[0].startswith("Means of 2 runs of the search, the same for all models.")


@pytest.mark.parametrize("count", [0, 1])
def test_models_that_failed(count: int):
    sheet = comparison([FIRST] * count + [{"model": "gat", "error": "failed"}] * 2)
    assert len(sheet.rows) == count + 2
