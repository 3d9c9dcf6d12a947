"""A question to discovery without a daemon."""

from typing import Any

import msgspec

from remit.app.workbench import Workbench, grant_of_subject
from remit.config.settings.table import Settings
from remit.features.discovery.answers import present
from remit.features.discovery.descriptors import event_descriptors, join
from remit.features.discovery.engine import make_engine
from remit.features.discovery.learning.lessons import NO_LESSONS
from remit.features.discovery.questions import DiscoveryConfig, Filters, options_of
from remit.features.discovery.setup import gatherer, usual_config
from remit.features.skills.views import bind_skills


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
