"""Text of outside servers, as a model may be shown it."""


def cleaned_text(text: str) -> str:
    """The text without what cannot be seen, and with no live marker of a role."""
    from remit.awareness.sanitise import sanitise  # noqa: PLC0415 - for outside tools only

    return text if text.isascii() and text.isalnum() else sanitise(text).text
