"""The HTML page of a report: one file that loads nothing else.

All text is escaped by Jinja2. The charts are JSON, of which no character can end a script element.
A content security policy allows only the scripts of this page, by their hashes, and no request.
"""

import base64
import hashlib
import importlib.util
import json
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

from dgt import __version__
from dgt.errors import InputError
from dgt.report.projection import Method
from dgt.storage.files import write_text

PACKAGES = ("bokeh", "jinja2")
INSTALL = "pip install 'deformable-graph-transformer[report]'"
MOST_FOLDERS = 8
MOST_POINTS = 9_000  # on all maps together, so that the file stays small


def require_packages() -> None:
    """Raises an error if the packages that draw the page are not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"a report needs {' and '.join(missing)}; install it with: {INSTALL}")


def check_path(path: Path) -> None:
    """Raises an error unless the file is an HTML file."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: unknown format of a report, expected an .html file")


def write_report(
    folders: list[Path],
    out: Path,
    *,
    graph: str | None = None,
    method: Method = "pca",
    device: str | None = None,
) -> None:
    """Writes a report about one or several run folders.

    Args:
        folders: Folders created by ``dgt train``.
        out: The HTML file.
        graph: The graph (default: the one that each run names).
        method: Method of the map of representations, ``"pca"`` or ``"tsne"``.
        device: Device to compute on (default: that of the run).
    """
    require_packages()
    check_path(out)
    if not 1 <= len(folders) <= MOST_FOLDERS:
        raise InputError(f"got {len(folders)} runs, expected 1 to {MOST_FOLDERS}")
    from dgt.report.facts import collect

    most = MOST_POINTS // len(folders)
    facts = [collect(folder, graph, method, most, device) for folder in folders]
    write_text(out, render(facts))


def render(facts: list[Any]) -> str:
    """Returns the page about the facts of one or several run folders."""
    from bokeh.embed import json_item
    from jinja2 import Environment
    from markupsafe import Markup

    from dgt.report.display import shown
    from dgt.report.sections import sections
    from dgt.report.sections.blocks import Chart, Columns, Table, Text

    items: list[dict[str, Any]] = []

    def embed(figure: Any) -> str:
        """Adds a chart to the page and returns the id of its place."""
        place = f"chart-{len(items) + 1}"
        items.append(json_item(figure, place))
        return place

    labels: Counter[str] = Counter()

    def unique(label: str) -> str:
        """Numbers equal labels, by which a screen reader lists the tables."""
        labels[label] += 1
        return label if labels[label] == 1 else f"{label} ({labels[label]})"

    scripts = [_bokeh(), _own("page.js")]
    kinds = {Chart: "chart", Columns: "columns", Table: "table", Text: "text"}
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    names = ", ".join(shown(each.name) for each in facts)
    return environment.from_string(_own("page.html")).render(
        title=f"Report on {names}",
        sections=sections(facts),
        style=Markup(_own("page.css")),
        scripts=[Markup(script) for script in scripts],
        policy=" ".join(f"'sha256-{_hash(script)}'" for script in scripts),
        charts=lambda: Markup(_json(items)),
        embed=embed,
        unique=unique,
        kind=lambda block: kinds[type(block)],
        version=__version__,
    )


def _bokeh() -> str:
    script = files("bokeh").joinpath("server/static/js/bokeh.min.js").read_text(encoding="utf-8")
    return _inline(script)


def _own(name: str) -> str:
    return files("dgt.report").joinpath(name).read_text(encoding="utf-8")


def _inline(script: str) -> str:
    """Makes sure that a script can be put into a page as it is."""
    assert "</script" not in script.lower()
    return script


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _json(value: Any) -> str:
    """Returns JSON for a script element: ASCII only, without any character of HTML."""
    text = json.dumps(value, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
