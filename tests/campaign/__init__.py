"""A campaign against the tool: malformed inputs, kills and faults, and valid controls.

``python -m tests.campaign`` runs all of it and prints a table; README.md explains how to add cases.
"""
