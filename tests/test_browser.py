"""The browser of the tests notices what other tests rely on it to notice."""

from pathlib import Path

from tests.browser import OpenTab


def test_it_records_requests_errors_and_dialogs(open_tab: OpenTab, tmp_path: Path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<script>alert(1); console.error('two'); fetch('http://127.0.0.1:9/three').catch(() => 0);"
        "setTimeout(() => { document.title = 'done'; throw Error('four') }, 50)</script>"
    )
    tab = open_tab()
    tab.page.goto(bad.as_uri())
    tab.page.wait_for_function("document.title === 'done'")
    tab.page.wait_for_timeout(50)
    assert "http://127.0.0.1:9/three" in tab.requests
    for text in ("dialog: 1", "error: two", "exception: four"):
        assert any(error.startswith(text) for error in tab.errors)


def test_it_finds_nothing_on_a_harmless_page(open_tab: OpenTab, tmp_path: Path):
    good = tmp_path / "good.html"
    good.write_text("<title>a</title><p id=p><script>p.textContent = matchMedia"
                    "('(prefers-color-scheme: dark)').matches</script>")  # fmt: skip
    tab = open_tab(color_scheme="dark")
    tab.page.goto(good.as_uri())
    assert tab.page.text_content("#p") == "true"
    assert tab.requests == tab.errors == []
