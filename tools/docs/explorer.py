"""Makes the pictures of the explorer for the documentation, from a real run.

    python tools/docs/explorer.py RUN [OTHER_RUN] [--out docs/assets] [--all]

Train the runs with ``dgt train cora --keep-checkpoints 24``. With ``--all``, every view is
photographed in light and in dark.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import sync_playwright

NODE = 33
CHANGES = [
    {"kind": "node", "node": 107, "shown": "107"},
    {"kind": "criterion", "criterion": 2},
    {"kind": "key", "block": 0, "criterion": 0, "head": 1, "key": 1, "position": 1.5},
]
# Name, state in the link, part of the page, and whether it is in the documentation, per scheme.
VIEWS: list[tuple[str, dict[str, Any], str | None, tuple[str, ...]]] = [
    ("start", {}, None, ()),
    ("page", {"node": NODE}, None, ("light", "dark")),
    ("ribbons", {"node": NODE, "head": 1}, "#ribbons", ("light",)),
    ("ribbons-epoch-0", {"node": NODE, "head": 1, "epoch": 0}, "#ribbons", ("light",)),
    ("ribbons-all", {"node": NODE, "color": "label"}, "#ribbons", ()),
    ("around", {"node": NODE, "hops": 2}, "#around", ("light",)),
    ("what-if", {"node": NODE, "head": 1, "edits": CHANGES}, ".pair", ("light",)),
    ("map-mistakes", {"map": "mistakes", "mistakes": "1", "order": "most sure"}, "#map", ()),
    ("compare", {"node": NODE, "withRun": 1, "withNode": NODE}, "#compare", ()),
    ("baseline", {"run": 2, "node": NODE, "hops": 2}, None, ()),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/assets"))
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    command = [sys.executable, "-m", "dgt", "explore", *asked.runs, "--no-browser", "--port=0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[0]
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
            )
            for name, state, part, schemes in VIEWS:
                needed = max(state.get("run", 0), state.get("withRun", 0)) + 1
                if needed > len(asked.runs):
                    continue
                for scheme in ("light", "dark") if asked.all else schemes:
                    suffix = "" if scheme == "light" else "-dark"
                    path = asked.out / f"explore-{name}{suffix}.png"
                    photograph(browser, f"{address}{link(state)}", part, scheme, path)
            browser.close()
    finally:
        server.terminate()
        server.wait()


def link(state: dict[str, Any]) -> str:
    texts = {k: json.dumps(v) if isinstance(v, list) else str(v) for k, v in state.items()}
    return "#" + "&".join(f"{name}={quote(text)}" for name, text in texts.items())


def photograph(browser: Any, address: str, part: str | None, scheme: str, path: Path) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 1100})
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready=true]", timeout=120_000)
    page.wait_for_timeout(500)
    if part is None:
        page.screenshot(path=path)
    else:
        page.locator(part).first.screenshot(path=path)
    context.close()
    print(path, f"{path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
