"""The engine of discovery, put together from the model and the counter that are configured.

Importing this costs numpy: only what searches does so.
"""

import os
from collections.abc import Callable

from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.errors import SettingsError
from remit.features.discovery.counting import CounterName, make_counter
from remit.features.discovery.embedding import Embedder, StaticVectors, static_folder
from remit.features.discovery.engine import Engine
from remit.features.discovery.index import Indexer
from remit.features.discovery.vectors import VectorCache
from remit.features.skills.files import ContentReader


def make_engine(settings: Settings) -> Engine:
    """Load the model and the counter that are configured.

    Raises:
        SettingsError: something is configured that is not installed.
    """
    cache = VectorCache(Home(settings.home).cache if settings.home.is_dir() else None)
    embedder = make_embedder(settings)
    return _engine(Indexer(embedder, cache), settings.token_counter)


def plain_engine() -> Engine:
    """What is installed, with nothing kept on disk."""
    static = StaticVectors() if static_folder() is not None else None
    return _engine(Indexer(static, VectorCache()))


def _engine(indexer: Indexer, counter: CounterName = "auto") -> Engine:
    reader = ContentReader()
    # The tokenizer that ships with the vectors counts too: it is loaded once.
    tokenizer = getattr(indexer.embedder, "tokenizer", None)
    return Engine(indexer, make_counter(counter, tokenizer), lambda each: reader.read(each.source))


def make_embedder(settings: Settings) -> Embedder | None:
    """The model behind the vectors; None: words alone."""
    make = _EMBEDDERS[settings.search]
    try:
        return make(settings)
    except ModuleNotFoundError as error:
        extra = "minilm" if settings.search == "minilm" else "search"
        message = f"search = {settings.search!r} needs {error.name}, which is not installed"
        raise SettingsError(message, hint=f"pip install 'remit[{extra}]'") from None


def _static_if_there(_settings: Settings) -> Embedder | None:
    return StaticVectors() if static_folder() is not None else None


def _minilm(_settings: Settings) -> Embedder:
    from remit.features.discovery.minilm import Blend  # noqa: PLC0415 - 90 MB, for those who want them

    return Blend()


def _http(settings: Settings) -> Embedder:
    from remit.features.discovery.remote import RemoteVectors  # noqa: PLC0415 - http.client

    variable = settings.embedder_key_variable
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        message = f"embedder_key_variable names {variable}, which is not set"
        raise SettingsError(message, hint=f"export {variable}=…, or take the setting out")
    if not settings.embedder_model:
        raise SettingsError("search = 'http' needs embedder_model", hint="name a model")
    return RemoteVectors(settings.embedder_url, settings.embedder_model, key)


_EMBEDDERS: dict[str, Callable[[Settings], Embedder | None]] = {
    "auto": _static_if_there,
    "words": lambda _settings: None,
    "static": lambda _settings: StaticVectors(),
    "minilm": _minilm,
    "http": _http,
}
