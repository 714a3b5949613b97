# SPDX-License-Identifier: Apache-2.0
"""markdown - text as the documents have it: lines of prose of at most 118 columns."""

import re
import textwrap

COLUMNS = 118


def wrapped(text):
    """The text with long lines of prose broken; tables, code and comments stay as they are."""
    lines = []
    for line in text.split("\n"):
        if len(line) <= COLUMNS or line.startswith(("|", "    ", "<!--", "![", "#")):
            lines.append(line)
            continue
        indent = " " * len(re.match(r"(?:[-*] )?", line)[0])
        lines += textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_long_words=False,
                               break_on_hyphens=False)
    return "\n".join(lines)
