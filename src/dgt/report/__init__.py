"""Tables and figures.

``sheet`` renders tables for the terminal and for Markdown files, ``plots`` draws figures. What goes
into the tables of the paper is decided in :mod:`dgt.experiments`.
"""

__all__ = ["plots", "sheet"]
