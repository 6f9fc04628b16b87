"""Makes the pictures of the documentation from a real run on Cora.

    python tools/docs/pictures.py [RUN]

Trains a model on Cora unless the folder of a run is given. Needs Chromium for the pictures of the
report.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT)]

from tests.browser import FLAGS, find_browser  # noqa: E402

import overview  # noqa: E402
from dgt.cli import main  # noqa: E402

OUT = ROOT / "docs" / "assets"
# Name of the picture, color scheme, section of the report, height, and what to choose before.
SHOTS = (
    ("report-top", "light", "overview", 295, None),
    ("report-classes", "light", "classes", 1180, None),
    ("report-graph", "dark", "graph", 1180, None),
    ("report-attention", "light", "attention", 690, None),
    ("report-map", "light", "map", 900, None),
    ("report-map-dark", "dark", "map", 900, "#map input[value=error]"),
)


def report(run: Path, folder: Path) -> None:
    """Takes pictures of sections of the report on a run."""
    path = folder / "report.html"
    assert main(["report", str(run), "--out", str(path), "--quiet"]) == 0
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=FLAGS)
        for name, scheme, section, height, choice in SHOTS:
            context = browser.new_context(
                color_scheme=scheme, viewport={"width": 860, "height": 1000}
            )
            page = context.new_page()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=true]")
            if choice:
                page.check(choice)
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(500)
            box = page.locator(f"#{section}").bounding_box()
            clip = {
                "x": 0, "y": box["y"], "width": 860, "height": min(box["height"] + 10, height),
            }  # fmt: skip
            page.screenshot(path=OUT / f"{name}.png", clip=clip, full_page=True)
            context.close()
        browser.close()


def make(run: Path | None) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.chdir(folder)  # so that the report shows a short path
        if run is None:
            assert main(["train", "cora", "--out", "cora"]) == 0
        else:
            shutil.copytree(run, "cora")
        run = Path("cora")
        overview.write(run, OUT / "overview.png")
        out = ["--out", str(folder / "keys.png")]
        assert main(["explain", str(run), "723", "--top=12", *out]) == 0
        (OUT / "keys.png").write_bytes((folder / "keys.png").read_bytes())
        report(run, folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None)
