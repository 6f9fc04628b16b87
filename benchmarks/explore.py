"""Measures ``dgt explore`` in a browser: time to the first view, clicks, changes, and memory.

    python benchmarks/explore.py RUN [--clicks 50]

Needs Playwright and Chromium. Prints one JSON object, with times in milliseconds. ``server_cpu``
and ``browser_cpu`` are the CPU time per click, which depends less on other work of the machine.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Clicks something and waits until the page has drawn the answer.
TIMED = """async ([selector, done]) => {
    const before = document.querySelector(done).textContent;
    const start = performance.now();
    document.querySelector(selector).dispatchEvent(new MouseEvent('click', {bubbles: true}));
    while (document.querySelector(done).textContent === before) {
        if (performance.now() - start > 20000) throw new Error('no answer');
        await new Promise(resolve => setTimeout(resolve, 1));
    }
    await new Promise(resolve => requestAnimationFrame(resolve));
    return performance.now() - start;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--clicks", type=int, default=50)
    asked = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        command = [sys.executable, "-m", "dgt", "explore", asked.run, "--no-browser", "--port=0"]
        started = time.perf_counter()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            page.goto(server.stdout.readline().split()[0], timeout=600_000)
            page.wait_for_selector("html[data-ready=true]", timeout=600_000)
            found = {
                "first_view": 1000 * (time.perf_counter() - started),
                "first_view_cpu": 1000 * cpu_of(psutil.Process(server.pid)),
            }
            print(json.dumps(found | measure(page, psutil.Process(server.pid), asked.clicks)))
        finally:
            server.terminate()
            server.wait()
        browser.close()


def cpu_of(process: psutil.Process) -> float:
    """Returns the seconds of CPU time that a process and its children have used."""
    every = [process, *process.children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in every if each.is_running())


def browser_cpu() -> float:
    """Returns the CPU time of the browser, which this process has started."""
    return sum(cpu_of(each) for each in psutil.Process().children() if "dgt" not in each.cmdline())


def measure(page: Any, server: psutil.Process, clicks: int) -> dict[str, Any]:
    """Clicks on nodes and tries out changes."""
    before = cpu_of(server), browser_cpu()
    page.click("#ideas button >> nth=1")
    page.wait_for_selector("#views:not([hidden])")
    title = "#node-title"
    opened = [
        page.evaluate(TIMED, [f".result[data-node='{node}']", title])
        for node in page.eval_on_selector_all(
            ".result:not([aria-current])", "all => all.map(each => each.dataset.node)"
        )[:clicks]
    ]
    cpu = cpu_of(server) - before[0], browser_cpu() - before[1]
    # A node with neighbors, for changes.
    page.evaluate(
        """async () => {
            const found = await (await fetch('/api/search?order=highest+degree')).json();
            location.hash = `node=${found.found[20].node}`;
        }"""
    )
    page.wait_for_selector(".edge.own", state="attached")
    page.wait_for_timeout(1000)
    result = "#what-if-result"
    changes: dict[str, list[float]] = {}
    for kind, selector in {
        "hide_edge": ".edge.own",
        "hide_node": "#attended tbody tr:nth-child(5) button.small",
        "hide_criterion": "#what-if-form input[data-criterion='0']",
    }.items():
        for _ in range(5):
            changes.setdefault(kind, []).append(page.evaluate(TIMED, [selector, result]))
            page.evaluate(TIMED, ["#edits button", result])
    return {
        "click_median": statistics.median(opened),
        "click_max": max(opened),
        "clicks": len(opened),
        "server_cpu": 1000 * cpu[0] / (len(opened) + 1),
        "browser_cpu": 1000 * cpu[1] / (len(opened) + 1),
        **{kind: statistics.median(times) for kind, times in changes.items()},
        "server_memory_mb": server.memory_info().rss / 1e6,
    }


if __name__ == "__main__":
    main()
