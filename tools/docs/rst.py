r"""Turns the reStructuredText in docstrings into Markdown.

Docstrings use the few constructs that PyTorch's do: ``:math:`` and ``.. math::``,
``.. code-block::``, cross-references such as ``:func:`` and named links. mkdocstrings renders
Markdown, so they are translated here instead of in every docstring.
"""

import re
import textwrap

BLOCK = re.compile(
    r"^(?P<indent>[ ]*)\.\. (?P<name>math|code-block)::[ ]*(?P<argument>\S*)[ ]*\n"
    r"(?P<body>(?:[ ]*\n|(?P=indent)[ ]+\S.*(?:\n|\Z))+)",
    flags=re.MULTILINE,
)
MATH = re.compile(r":math:`([^`]+)`")
REFERENCE = re.compile(r":(?:class|func|meth|mod|attr|obj|data):`(~?)([^`]+)`")
LINK = re.compile(r"`([^`<]+?)\s+<(https?://[^>]+)>`_+")


def markdown(text: str, scope: str = "") -> str:
    """Translates a docstring.

    Args:
        text: The docstring.
        scope: Full name of the object that it belongs to; references without a dot are looked up
            beside that object.
    """
    text = BLOCK.sub(_block, text)
    text = MATH.sub(lambda match: rf"\({_one_line(match[1])}\)", text)
    text = LINK.sub(lambda match: f"[{_one_line(match[1])}]({match[2]})", text)
    return REFERENCE.sub(lambda match: _reference(match[2], bool(match[1]), scope), text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _block(match: re.Match[str]) -> str:
    indent, body = match["indent"], textwrap.dedent(match["body"]).strip("\n")
    if match["name"] == "math":
        lines = [r"\[" + _one_line(body) + r"\]"]
    else:
        lines = [f"```{match['argument']}", *body.splitlines(), "```"]
    return "\n".join(["", *(indent + line for line in lines), "", ""])


def _reference(target: str, short: bool, scope: str) -> str:
    """Returns a link if the target is part of the site, else plain code."""
    name = target.rpartition(".")[2] if short else target
    if "." not in target and scope:
        target = f"{scope.rpartition('.')[0]}.{target}"
    return f'<autoref identifier="{target}" optional><code>{name}</code></autoref>'
