"""What is wrong with a decorated function, with every place that is to blame."""

from remit.errors import HandlerError
from remit.model.event import EFFECTS
from remit.model.place import Place
from remit.model.suggest import did_you_mean


class MisplacedHandlerError(HandlerError):
    """A decorated function that cannot be served."""

    problem: str = HandlerError.code
    """The code of the mistakes that `remit check` tells."""

    def __init__(self, message: str, *, hint: str, places: tuple[Place, ...]) -> None:
        super().__init__(message, hint=hint)
        self.places = places


class TakenEventError(MisplacedHandlerError):
    """Two functions with one event; the second is not served."""

    problem = "duplicate_event"

    def __init__(self, name: str, first: Place | None, second: Place | None) -> None:
        message = f"{name!r} has a handler already: {first}, and again: {second}"
        places = tuple(place for place in (second, first) if place is not None)
        super().__init__(message, hint="give one of them another name", places=places)


def check_effect(effect: str, place: Place) -> None:
    """Refuse a word that is no effect: whatever compares effects would stop at it.

    Raises:
        MisplacedHandlerError: it is none.
    """
    if effect not in EFFECTS:
        hint = did_you_mean(str(effect), EFFECTS)
        raise MisplacedHandlerError(f"{effect!r} is no effect", hint=hint, places=(place,))
