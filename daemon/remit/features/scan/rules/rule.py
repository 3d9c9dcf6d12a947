# ruff: noqa: E501 - a pattern is read in one piece
"""What a rule of the scanner is, and the words that rules share.

Rules are written in RE2, so each takes time in proportion to the text, whatever the text. They see
text in lower case without accents; borders of words are known for ASCII alone.
"""

from typing import Literal

import msgspec

Severity = Literal["low", "medium", "high"]
Category = Literal[
    "instruction_override",
    "role_marker",
    "persona",
    "prompt_leak",
    "exfiltration",
    "credential_request",
    "hidden_text",
    "tool_poisoning",
    "tool_shadowing",
    "pressure",
    "foreign_task",
    "encoded_payload",
    "incomplete_scan",
]

ADVICE: dict[Category, str] = {
    "instruction_override": "Take the sentence out: text by others must not change instructions.",
    "role_marker": "Remove the marker, or write it so that it cannot be read as a speaker.",
    "persona": "Remove the persona: a description says what a thing does, not who the agent is.",
    "prompt_leak": "Take the request out: nothing described here needs an agent's instructions.",
    "exfiltration": "Do not use this until you know who receives the data, and why.",
    "credential_request": "Hand secrets over by configuration; text must not ask for them.",
    "hidden_text": "Delete what cannot be seen, then read what is left.",
    "tool_poisoning": "Do not load this tool before its author has explained the sentence.",
    "tool_shadowing": "Describe this tool alone; it must not steer the use of others.",
    "pressure": "Check who says so: urgency and rank are no reason to obey a text.",
    "foreign_task": "Move the request to where tasks are given; here it can only be injected.",
    "encoded_payload": "Decode it, read it, and write it plainly or remove it.",
    "incomplete_scan": "Shorten the text or scan it in parts: the rest was not read.",
}


class Rule(msgspec.Struct, frozen=True):
    """One suspicious wording.

    The weight is in points; `SUSPICIOUS` of them near each other make a text suspicious.
    """

    id: str
    category: Category
    weight: int
    pattern: str
    unless: str = ""
    """What, in the words around, makes it ordinary."""
    compact: bool = False
    """Also looked for in words that were spaced out or run together."""

    @property
    def severity(self) -> Severity:
        """High is enough alone; low never is, nor are two of them."""
        return severity_of(self.weight)

    @property
    def advice(self) -> str:
        """What to do about it."""
        return ADVICE[self.category]


SUSPICIOUS = 50
_LOW = 20


def severity_of(weight: int) -> Severity:
    """The word for a number of points."""
    return "high" if weight >= SUSPICIOUS else "medium" if weight > _LOW else "low"


def words(most: int) -> str:
    """At most so many words between two others."""
    return rf"(?:\W+\w+){{0,{most}}}\W+"


def near(most: int) -> str:
    """At most so many characters of the same sentence."""
    return rf"[^.!?]{{0,{most}}}"


MODEL = (
    r"(?:ai|a\.i\.|llms?|large language model|language model|assistant|chat ?bot|chat ?gpt|gpt(?:-?\d\w*)?"
    r"|claude|gemini|llama|bard|copilot|mistral|deepseek|grok|agent|model)"
)
"""How a text speaks to the one who reads it."""
PRIVATE = (
    r"(?:pass ?words?|passcodes?|pass ?phrases?|api[ _-]?keys?|secret keys?|private keys?|ssh keys?|secrets"
    r"|credentials?|access tokens?|auth(?:entication)? tokens?|session (?:tokens?|cookies?)|security codes?"
    r"|verification codes?|one[- ]time (?:codes?|passwords?)|otps?|2fa codes?|pin codes?|seed phrases?|mnemonics?"
    r"|credit[ -]?cards?(?: numbers?| details)?|card numbers?|cvv|bank (?:account|details|statement)s?(?: numbers?)?"
    r"|account numbers?|routing numbers?|ssn|social security(?: numbers?)?|passports?(?: numbers?)?|id_rsa"
    r"|environment variables|env vars?|\.env|private (?:data|information|messages|files)|personal (?:data|information|details)"
    r"|sensitive (?:data|information|files)|confidential (?:data|information|files)|user (?:data|information|database)"
    r"|(?:browsing|search|chat|conversation|purchase|transaction|medical|order|message|call) (?:history|histories|records?|logs?)"
    r"|medical (?:data|information)|health (?:data|records?)|genetic data|saved (?:addresses|places|payment methods?|cards?)"
    r"|payment methods?|home address(?:es)?|contact list|contacts)"
)
"""What nobody sends to strangers."""
