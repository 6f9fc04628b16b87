"""MkDocs hooks: settings tables, figures from outside of ``docs``, and TeX as MathML.

MathML needs no script in the reader's browser, so the pages show formulas offline too.
"""

import html
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from settings import settings_page

ROOT = Path(__file__).parents[2]
SETTINGS = "<!-- settings -->"
FIGURE = re.compile(r"\]\(\.\./((?:results|benchmarks)/[^)]+\.png)\)")
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the figures that pages take from ``results`` and ``benchmarks``."""
    pages = [file.content_string for file in files.documentation_pages()]
    for path in sorted({path for page in pages for path in FIGURE.findall(page)}):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Adapts the Markdown, which also has to read well in the repository."""
    if SETTINGS in markdown:
        markdown = markdown.replace(SETTINGS, settings_page())
    markdown = FIGURE.sub(r"](\1)", markdown)
    return markdown.replace("<details>", "<details markdown>")


def on_page_content(content: str, **kwargs: Any) -> str:
    """Converts formulas to MathML."""
    return FORMULA.sub(_mathml, content)


def _mathml(match: re.Match[str]) -> str:
    display = "block" if match["tag"] == "div" else "inline"
    return convert(html.unescape(match["tex"]).strip(), display=display)
