"""What tests of the explorer's page share."""

import time
from typing import Any


def ready(page: Any, shown: bool = True) -> None:
    """Waits until the first view is drawn."""
    page.wait_for_selector("html[data-ready=true]", timeout=60_000)
    if shown and "node=" in page.url:
        page.wait_for_selector("#views:not([hidden])")


def until(page: Any, script: str, *argument: object, seconds: float = 30) -> None:
    """Waits until a script is true. Playwright's own function needs ``eval``, which the page
    forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(script, *argument):
        assert time.monotonic() < end, f"still not true: {script}"
        page.wait_for_timeout(20)


def title_is(page: Any, text: str) -> None:
    """Waits until a node is shown."""
    until(page, "text => document.getElementById('node-title').textContent === text", text)


def contrasts() -> str:
    """Returns a script that computes the contrast of each text with its background."""
    return """() => {
        const canvas = document.createElement('canvas')
            .getContext('2d', {willReadFrequently: true});
        const parse = (color) => {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = color;
            canvas.fillRect(0, 0, 1, 1);
            const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
            return [r, g, b, a / 255];
        };
        const light = ([r, g, b]) => {
            const [x, y, z] = [r, g, b].map((v) => v / 255)
                .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * x + 0.7152 * y + 0.0722 * z;
        };
        const ground = (node) => {
            for (let at = node; at; at = at.parentElement) {
                const color = parse(getComputedStyle(at).backgroundColor);
                if (color[3] > 0.99) return color;
            }
            return [255, 255, 255, 1];
        };
        const found = [];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const node = walker.currentNode.parentElement;
            if (!walker.currentNode.textContent.trim() || !node.getClientRects().length) continue;
            if (node.closest('.hidden-row') || node.tagName === 'OPTION') continue;
            const style = getComputedStyle(node);
            const color = parse(node.ownerSVGElement ? style.fill : style.color);
            const [a, b] = [light(color), light(ground(node))];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            found.push({text: walker.currentNode.textContent.slice(0, 30), ratio});
        }
        return found;
    }"""
