"""The campaign sees what is wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dgt.cli.app import app
from tests.campaign.__main__ import begin, text
from tests.campaign.classes import CLASSES, KNOWN_WRONG, cases
from tests.campaign.classes.flags import commands
from tests.campaign.pool import run_all

# Processes of their own, and calls of operators: not inputs.
SLOW = ("faults", "races", "surroundings", "kills", "operators")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        found = begin(tmp_path_factory.mktemp("campaign"), patch.setenv)
        yield found


def test_what_is_wrong_is_seen(environment: dict[str, str]) -> None:
    jobs = [(KNOWN_WRONG, case) for case in cases(KNOWN_WRONG).values()]
    verdicts = run_all(jobs, environment, 1)
    for verdict in verdicts:
        kind = verdict.name.split(":")[0]
        assert (verdict.wrong or "right") == kind, text(verdict)
    assert len(verdicts) == len(jobs)


def test_there_are_enough_inputs_and_controls(environment: dict[str, str]) -> None:
    counts = {klass: len(cases(klass)) for klass in CLASSES}
    controls = {k: sum(c.expect == "accepted" for c in cases(k).values()) for k in CLASSES}
    assert all(counts.values())
    inputs = [klass for klass in CLASSES if klass not in SLOW]
    assert sum(counts[klass] for klass in inputs) >= 2000
    assert sum(controls[klass] for klass in inputs) >= 200


def test_every_flag_of_every_command_is_tried(environment: dict[str, str]) -> None:
    tried = [name.split()[:2] for name in cases("flags")]
    for command in commands():
        for argument in app[command].assemble_argument_collection():
            assert argument.name == "*" or argument.children or [command, argument.name] in tried


def test_the_readme_names_every_class() -> None:
    readme = (Path(__file__).parent / "README.md").read_text()
    assert [klass for klass in CLASSES if f"`{klass}`" not in readme] == []
