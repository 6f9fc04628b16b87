"""Names are shown on one line, short and without characters that change the text around them."""

import unicodedata

import pytest

from dgt.report.display import chart_text, count, percent, shown
from tests.report.hostile import HOSTILE

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize("name", [*HOSTILE, "", "\ud800", 7, None])
def test_every_character_is_visible(name: object):
    text = shown(name)
    assert 1 <= len(text) <= 60
    hidden = [c for c in text if unicodedata.category(c) in HIDDEN and c != "\u200d"]
    assert hidden == []
    text.encode()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_chart_text_is_a_formula(name: str):
    text = chart_text(name)
    assert not any(mark in text for mark in ("$$", "\\(", "\\["))


def test_ordinary_names_are_kept():
    for name in ("Neural_Networks", "Straße 3", "日本語", "مرحبا", "a & b <c>"):
        assert shown(name) == chart_text(name) == name
    assert shown("a" * 61) == "a" * 59 + "…"
    assert shown("a\nb\x00") == "a␊b␀"


def test_numbers():
    assert (percent(0.12345), percent(None), percent(float("nan"))) == ("12.3%", "–", "–")
    assert (count(1, "node"), count(2000, "node")) == ("1 node", "2,000 nodes")
    assert count(2, "class", "classes") == "2 classes"
