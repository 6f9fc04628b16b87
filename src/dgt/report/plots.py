"""Figures, as PNG or PDF files."""

import io
import warnings
from pathlib import Path

from matplotlib.figure import Figure

from dgt.errors import InputError
from dgt.storage.files import write_bytes

SUFFIXES = (".png", ".pdf")
WIDEST = 1800  # pixels


def check_path(path: Path) -> None:
    """Raises an error if :func:`save` does not support the file format."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: unknown format of a figure, expected a .png or .pdf file")


def save(figure: Figure, path: Path) -> None:
    """Writes a figure without a timestamp, so that equal figures give equal files."""
    check_path(path)
    kind = path.suffix.lower().removeprefix(".")
    buffer = io.BytesIO()
    date = {"CreationDate": None} if kind == "pdf" else None
    with warnings.catch_warnings():
        # A name may have characters that no font has; they are drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        dpi = min(200, WIDEST / figure.get_figwidth())
        figure.savefig(buffer, format=kind, dpi=dpi, bbox_inches="tight", metadata=date)
    write_bytes(path, buffer.getvalue())


def curve(
    x: list[float], means: list[float], intervals: list[float], *, xlabel: str, ylabel: str
) -> Figure:
    """Draws means with confidence intervals as a function of a setting."""
    figure = Figure(figsize=(5.2, 3.4))
    axis = figure.subplots()
    axis.errorbar(x, means, yerr=intervals, marker="o", capsize=3, color="tab:red")
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    axis.grid(color="0.9")
    return figure
