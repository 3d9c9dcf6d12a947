"""Awareness beside the daemon: its folders, and what it keeps."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from remit.app.assemble import Cards
from remit.app.card_settings import (
    awareness_config,
    configured_scorers,
    searched_for_cards,
    token_count,
)
from remit.config.settings.table import Settings
from remit.features.cards.library import CardLibrary
from remit.kernel.dispatch.services import Services
from remit.kernel.reload.watch import watch_directories


def configured_cards(settings: Settings) -> Cards:
    """Awareness as the settings want it; nothing is loaded before somebody asks."""
    count = token_count(settings)
    return Cards(
        lambda: CardLibrary(searched_for_cards(settings), count=count),
        lambda: configured_scorers(settings),
        count,
        awareness_config(settings),
        lambda: any(
            root.source != "built_in" and root.path.exists()
            for root in searched_for_cards(settings)
        ),
    )


@asynccontextmanager
async def awaring(settings: Settings, services: Services) -> AsyncGenerator[None]:
    """Take over what was decided and counted, follow the folders, and keep what is counted."""
    awareness = services.awareness
    await services.card_reviews.load()
    await awareness.memory.load()

    reread = awareness.shelf.reread
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reread)
        if settings.watch:
            folders = [root.path for root in searched_for_cards(settings)]
            tasks.start_soon(watch_directories, folders, reread)
        tasks.start_soon(awareness.memory.keep)
        yield
        tasks.cancel_scope.cancel()
