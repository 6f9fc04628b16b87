"""A fixed sample of the campaign, and tests that it sees what is wrong."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dgt.cli.app import app
from tests.campaign.__main__ import begin, table, text
from tests.campaign.case import Verdict
from tests.campaign.classes import CLASSES, KNOWN_WRONG, cases
from tests.campaign.classes.flags import commands
from tests.campaign.pool import Job, run_all

# Of processes of their own, a few that are killed or fail at fixed events, not at a time. Random
# calls of operators have a test.
CHOSEN = {
    "faults": ("train, files of at most 300 bytes", "predict, read-only folder"),
    "races": (),
    "surroundings": ("train, HOME is missing",),
    "kills": ("train 1", "predict 1"),
    "operators": (),
}
PER_CLASS = 8
SECONDS = "600"  # after which a case hangs; machines that run other tests are slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DGT_CAMPAIGN_SECONDS", SECONDS)
        yield begin(tmp_path_factory.mktemp("campaign"), patch.setenv)


def sample() -> list[Job]:
    """Returns cases of each class: evenly spread, and among them a control."""
    jobs: list[Job] = []
    for klass in CLASSES:
        found = cases(klass)
        if klass in CHOSEN:
            chosen = [found[name] for name in CHOSEN[klass]]
        else:
            every = list(found.values())
            chosen = [every[len(every) * i // PER_CLASS] for i in range(PER_CLASS)]
            chosen += [case for case in every if case.expect == "accepted"][:1]
        jobs += [(klass, replace(case, seconds=float(SECONDS))) for case in chosen]
    return jobs


def test_sample(environment: dict[str, str]) -> None:
    verdicts: list[Verdict] = run_all(sample(), environment, 1)
    wrong = [text(verdict) for verdict in verdicts if verdict.wrong]
    assert not wrong, "\n".join([*wrong, table(verdicts)])
    assert sum(verdict.control for verdict in verdicts) >= 20


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
    inputs = [klass for klass in CLASSES if klass not in CHOSEN]
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
