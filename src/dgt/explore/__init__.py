"""The explorer: a local web application that shows a trained model at work.

:mod:`dgt.explore.session` opens a run. Each of the modules beside it computes one view as plain
values, which :mod:`dgt.explore.app` serves as JSON to the page in ``static``.
"""
