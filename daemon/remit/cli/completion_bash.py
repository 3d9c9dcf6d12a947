"""Completion in bash, where a colon ends a word: the names of events have colons."""

import os
from typing import Any

from click.shell_completion import BashComplete, CompletionItem, split_arg_string

_SCRIPT = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local response

    response=$(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete $1 2>/dev/null)

    for completion in $response; do
        IFS=',' read type value <<< "$completion"

        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=($value)
        fi
    done

    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class RemitBash(BashComplete):
    """Reads the line itself, and answers from the last colon on, as bash replaces from there."""

    name = "bash"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """The whole words before the cursor, and the one that is being typed."""
        line = os.environ["COMP_LINE"]
        before = os.fsdecode(os.fsencode(line)[: int(os.environ["COMP_POINT"])])
        words = split_arg_string(before)
        incomplete = words.pop() if words and not before[-1:].isspace() else ""
        self._cut = 0
        if ":" in os.environ.get("COMP_WORDBREAKS", ":"):
            self._cut = incomplete.rfind(":") + 1
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """One line of the answer."""
        return f"{item.type},{item.value[self._cut :]}"
