"""Tables, figures and the page about a run.

``sheet`` renders tables for the terminal and for Markdown files, ``plots`` and ``attention_figure``
draw figures. What goes into the tables of the paper is decided in :mod:`dgt.experiments`. ``facts``
collects what there is to say about a run, ``sections`` and ``charts`` decide how to say it, and
``page`` puts it into one HTML file.
"""

__all__ = ["plots", "sheet"]
