"""Rules of accessibility, checked in the browser by axe-core.

axe-core is a package of npm. Tests that use it are skipped where npm cannot provide it.
"""

import shutil
import subprocess
import tarfile
from collections.abc import Callable
from typing import Any

import pytest

VERSION = "4.14.0"
RUN = """async () => (await axe.run()).violations.flatMap(rule =>
    rule.nodes.map(node => `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`))"""
Violations = Callable[[Any], list[str]]


@pytest.fixture(scope="session")
def violations(request: pytest.FixtureRequest) -> Violations:
    """A function that returns what is wrong on a Playwright page."""
    script = _script(request.config)

    def check(page: Any) -> list[str]:
        page.evaluate(script)
        return page.evaluate(RUN)

    return check


def _script(config: pytest.Config) -> str:
    """Returns the script of axe-core. It is downloaded once and kept in the cache of pytest."""
    folder = config.cache.mkdir("axe-core")  # type: ignore[union-attr]
    archive = folder / f"axe-core-{VERSION}.tgz"
    if not archive.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("needs axe-core, a package of npm, and npm is not installed")
        command = [npm, "pack", f"axe-core@{VERSION}", "--pack-destination", str(folder)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"needs axe-core, which npm cannot download: {error}")
    with tarfile.open(archive) as package:
        file = package.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()
