"""Why a search has ended without a complete trial, and what to do about it."""

from optuna.trial import TrialState

from dgt.system.progress import duration
from dgt.tune.share import Share
from dgt.tune.trials import DONE


def reason(share: Share, alone: bool) -> str:
    """Returns the error of the trials or, if they only lacked time, what to set.

    Args:
        share: The search.
        alone: Whether it had all the time for itself.
    """
    errors = [t.user_attrs["error"] for t in share.trials.all(*DONE) if "error" in t.user_attrs]
    return errors[-1] if errors else _advice(share, alone)


def _advice(share: Share, alone: bool) -> str:
    """Returns how far a search got, and what to set so that it gets further."""
    runs = len(share.trials.configs)
    tried = [t.user_attrs for t in share.trials.all(*TrialState) if t.user_attrs.get("values")]
    if tried:
        furthest = max(tried, key=lambda each: len(each["values"]))
        done = len(furthest["values"])
        seconds = furthest.get("seconds", 0.0) / done
        state = (
            f"a trial got to {done} of {runs} runs, {duration(seconds)} each, and takes about "
            f"{duration(seconds * runs)} in all"
        )
    elif share.longest:
        state = (
            f"the first of {runs} run{'s' * (runs > 1)} of a trial was not finished after "
            f"{duration(share.longest)}"
        )
    else:
        state = "no run was started"
    limit = "--cpu-minutes" if share.cpu else "--hours"
    fewer = "" if alone else " or fewer --models"
    start_again = " or --runs" if runs > 1 else ""
    return (
        f"{state}; to continue, run the same command with more {limit}{fewer}; or search in "
        f"another folder with fewer --epochs{start_again}"
    )
