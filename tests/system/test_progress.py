"""Progress on a terminal, elsewhere, and disabled."""

import io
import time

import pytest
from rich.console import Console

from dgt.system import progress
from dgt.system.progress import Curve, duration, live_bar, progress_bar, showing, sparkline


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The output of a terminal with 100 columns."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(progress, "Console", lambda **_: console)
    return shown


def test_lines_show_the_time_left_by_the_pace_after_the_first_items(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress_bar("work", 100, shown=True) as advance:
        for seconds in (100, 10, 10, 10, 10):  # the first ten items include one-time work
            now += seconds
            advance(10)
    assert capsys.readouterr().err == "work: 20%, 80 s left\nwork: 50%, 50 s left\n"


def test_nothing_is_shown_if_disabled(
    capsys: pytest.CaptureFixture[str], terminal: io.StringIO
) -> None:
    with progress_bar("work", 10, shown=False) as advance:
        advance(10)
    with live_bar("work", 10, shown=False) as show:
        show(1, "status", "line")
    assert capsys.readouterr().err == terminal.getvalue() == ""


def test_bars_are_shown_as_set_around_them(terminal: io.StringIO) -> None:
    with progress_bar("hidden", 10) as advance:
        advance(10)
    assert terminal.getvalue() == ""
    with showing(True), progress_bar("work", 10):
        pass
    assert terminal.getvalue() != ""
    before = terminal.getvalue()
    with showing(True), showing(False), progress_bar("hidden", 10) as advance:
        advance(10)
    assert terminal.getvalue() == before


def test_without_a_terminal_only_the_given_lines_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with live_bar("epochs", 3, shown=True, below=lambda: "table") as show:
        show(1, "status")
        show(2, "status", "epoch 2: 80%")
    assert capsys.readouterr().err == "epoch 2: 80%\n"


def test_a_terminal_shows_bar_status_and_what_is_below(terminal: io.StringIO) -> None:
    with live_bar("trials", 50, shown=True, done=3, below=lambda: "table") as show:
        show(4, "best 81%", "a line")
    bar, below = terminal.getvalue().splitlines()[-3:-1]  # the last line restores the cursor
    for text in ("trials", "4/50", "best 81%"):
        assert text in bar
    assert below.startswith("table")
    assert "a line" not in terminal.getvalue()


def test_a_bar_with_a_delay_is_not_shown_for_short_work(terminal: io.StringIO) -> None:
    with live_bar("work", 2, shown=True, delay=0.05) as show:
        show(1)
        assert "work" not in terminal.getvalue()
        time.sleep(0.06)
        show(2)
    assert "2/2" in terminal.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (80, "80 s"), (720, "12 min"), (7500, "2 h 5 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_sparkline_shows_the_range_and_the_last_value() -> None:
    assert sparkline([1.0], 8) == "▁"
    assert sparkline([0.0, 0.5, 1.0, 0.0], 8) == "▁▅█▁"
    long = [i / 999 for i in range(1000)]
    line = sparkline(long, 10)
    assert len(line) == 10
    assert line[-1] == "█"
    assert list(line) == sorted(line)


def test_a_curve_grows_below_the_bar(terminal: io.StringIO) -> None:
    curve = Curve("val accuracy", "{:.0%}".format, [])
    with live_bar("epochs", 3, shown=True, below=lambda: curve) as show:
        for epoch, value in enumerate((0.2, 0.9, 0.5), start=1):
            curve.values.append(value)
            show(epoch)
    assert "val accuracy ▁█▄ 20% to 90%" in terminal.getvalue()
