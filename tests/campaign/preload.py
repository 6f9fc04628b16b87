"""Imports what commands need, for the process that theirs are forked from."""

import dgt.cli.app
import dgt.estimator
import dgt.experiments
import dgt.report
import dgt.runs.many
import dgt.tune  # noqa: F401
import tests.campaign.processes  # noqa: F401
