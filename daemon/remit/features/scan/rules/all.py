"""All rules of the scanner, as data."""

from functools import cache

from remit.features.scan.rules.jailbreak import JAILBREAKS
from remit.features.scan.rules.languages import language_rules
from remit.features.scan.rules.marks import MARKS
from remit.features.scan.rules.override import LEAKS, OVERRIDES
from remit.features.scan.rules.persona import PERSONAS
from remit.features.scan.rules.rule import Rule
from remit.features.scan.rules.theft import THEFT
from remit.features.scan.rules.tools import POISON


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule that is matched against text, in the stated order."""
    return (*OVERRIDES, *LEAKS, *PERSONAS, *JAILBREAKS, *POISON, *THEFT, *MARKS, *language_rules())
