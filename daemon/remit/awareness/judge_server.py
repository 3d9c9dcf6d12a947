"""How a host starts a server: what is downloaded and run unseen can be anything tomorrow."""

import re
from collections.abc import Iterator

from remit.awareness.alarm import Alarm
from remit.awareness.described import Subject
from remit.awareness.judge_text import alarm

_PIPE = re.compile(
    r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n]{0,400}?(?:\|\s*(?:sudo\s+)?"
    r"(?:(?:ba|z|da|k|fi)?sh|python3?|node|perl|iex)\b|[<$]\()"
    r"|\b(?:ba|z|da|k)?sh\b[^\n]{0,40}(?:<\(|\$\(|`)\s*(?:curl|wget)\b",
    re.IGNORECASE,
)
_READ = 20_000
"""Characters of one argument; no command line is longer."""


def judge_server(subject: Subject) -> Iterator[Alarm]:
    """Commands that run what they download."""
    for text in subject.texts:
        if found := _PIPE.search(text.value[:_READ]):
            yield alarm(
                subject,
                text,
                found.start(),
                "server.pipe_to_shell",
                severity="warning",
                excerpt=found.group(),
            )
