import pytest

from dgt import progress
from dgt.progress import progress_bar


def test_lines_tell_the_time_left_from_the_pace_after_the_first_items(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress_bar("work", 100, shown=True) as advance:
        for seconds in (100, 10, 10, 10, 10):  # the first ten items wait for something long
            now += seconds
            advance(10)
    assert capsys.readouterr().err == "work: 20%, 80 s left\nwork: 50%, 50 s left\n"


def test_no_line_where_none_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("work", 10, shown=False) as advance:
        advance(10)
    assert capsys.readouterr().err == ""
