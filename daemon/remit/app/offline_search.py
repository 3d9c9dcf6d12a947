"""A question to discovery without a daemon."""

from typing import Any

import msgspec

from remit.app.discovering import gatherer, usual_config
from remit.app.searching import make_engine
from remit.app.subjects import grant_of_subject
from remit.app.workbench import Workbench
from remit.config.settings_table import Settings
from remit.discovery.binding import bind_skills
from remit.discovery.lessons import NO_LESSONS
from remit.runtime.event_descriptors import event_descriptors
from remit.runtime.finder import join
from remit.runtime.finding import DiscoveryConfig, Filters, options_of, present


def discover_offline(
    bench: Workbench,
    settings: Settings,
    subject: str,
    question: dict[str, Any],
    *,
    files_first: bool,
) -> dict[str, Any]:
    """Answer as the daemon would that has these definitions, and has learned nothing yet."""
    grant = grant_of_subject(bench, subject, files_first=files_first)
    engine = make_engine(settings)
    descriptors = join(
        event_descriptors(bench.handlers, bench.catalogue),
        bind_skills(gatherer(settings)().descriptors, bench.catalogue.capabilities.values()),
    )
    engine.put_in_force(engine.prepare(descriptors, NO_LESSONS))
    config = msgspec.convert(question.pop("config", {}), DiscoveryConfig)
    query = question.pop("query")
    options = options_of(usual_config(settings), config, grant, Filters(**question))
    found = engine.discover(engine.view(grant), query, options)
    return present(found, engine, revision=bench.catalogue.revision)
