"""Which era of the protocol a server is greeted in.

The newer greeting goes first, and a server that does not know it answers with an error. But some
end instead, or never answer: those are greeted the old way when they are started again.
"""


class Eras:
    """The greeting of one server."""

    def __init__(self, *, is_process: bool) -> None:
        self._open = is_process
        self._turned = False
        self.mode = "auto"

    def settle(self) -> None:
        """It answered: so it is greeted from now on."""
        self._open = False

    def failed(self, *, during: bool) -> bool:
        """It did not answer; tells whether to try the other greeting at once.

        Args:
            during: whether it ended while it was greeted.
        """
        if not self._open:
            return False
        first, self._turned = not self._turned, True
        self.mode = "legacy" if self.mode == "auto" else "auto"
        return first and during
