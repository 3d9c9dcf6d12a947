"""All rules of the scanner, as data."""

from functools import cache

from remit.awareness.scan_languages import language_rules
from remit.awareness.scan_rule import Rule
from remit.awareness.scan_rules_jailbreak import JAILBREAKS
from remit.awareness.scan_rules_marks import MARKS
from remit.awareness.scan_rules_override import LEAKS, OVERRIDES
from remit.awareness.scan_rules_persona import PERSONAS
from remit.awareness.scan_rules_theft import THEFT
from remit.awareness.scan_rules_tools import POISON


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule that is matched against text, in the stated order."""
    return (*OVERRIDES, *LEAKS, *PERSONAS, *JAILBREAKS, *POISON, *THEFT, *MARKS, *language_rules())
