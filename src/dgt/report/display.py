"""How names and numbers from a user's files are shown: short, on one line, and harmless."""

import math
import unicodedata

LONGEST = 60
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Text between these is set as a formula by Bokeh, which loads a program from the web to do so.
FORMULA = (r"\(", r"\[", "$$")
BREAK = "\N{ZERO WIDTH SPACE}"


def shown(value: object, longest: int = LONGEST) -> str:
    """Returns a name without control characters, and shortened if it is very long.

    Line breaks, NUL and other control characters become visible symbols. Characters that change
    the direction of the text around them, and lone surrogates, are replaced.
    """
    text = str(value)
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return "".join(map(_visible, text)) or "(empty)"


def chart_text(value: object, longest: int = 24) -> str:
    """Like :func:`shown`, for text that Bokeh draws."""
    text = shown(value, longest)
    for mark in FORMULA:
        text = text.replace(mark, mark[0] + BREAK + mark[1])
    return text


def percent(value: float | None, digits: int = 1) -> str:
    """Formats a share, or a dash if there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}%}"


def points(value: float) -> str:
    """Formats a difference of two shares in percentage points."""
    return f"{100 * value:+.1f}"


def count(value: int, one: str, many: str | None = None) -> str:
    """Returns a number and a noun or verb, such as ``1 node`` and ``2 nodes``."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def _visible(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    # Cc: control, Cf: format, such as a change of direction, Cs: surrogate, Zl, Zp: line breaks
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    return REPLACEMENT if hidden and character != "\N{ZERO WIDTH JOINER}" else character
