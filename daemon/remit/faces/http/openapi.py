"""Operations of the HTTP API, and the OpenAPI 3.1 document and the HTML page that describe them.

An `Operation` is one method of one path: what it calls, and the shapes of its request and answer.
Shapes describe and do not decide: what an event takes is checked by the event itself. Where an
event has a request type, that type is the one that is described.
"""

from collections.abc import Awaitable, Callable, Iterable
from html import escape
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response

from remit import __version__
from remit.faces.http.responses import JSON, PROBLEM_JSON, ProblemBody
from remit.model.schema import published

RequestType = Callable[[str], type[msgspec.Struct] | None]
"""The request type of an event; None when no such event is served."""

_REF = "#/components/schemas/{name}"
_SCHEMA_NAMES = {"CapabilityChoice": "Chosen"}
"""What a type is called in the document, where that is not its own name: clients rely on it."""
_Shape = TypeVar("_Shape", bound=type[msgspec.Struct])


class QueryParameter(msgspec.Struct, frozen=True):
    """A query parameter."""

    name: str
    schema: dict[str, Any]
    text: str


class EventBody(msgspec.Struct, frozen=True):
    """A body that is the request of the operation's event, with other names for some fields."""

    name: str = ""
    """The name of the schema; empty: that of the request type."""
    renamed: dict[str, str | None] = {}
    """New names by field of the request type; None leaves a field out."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: str
    path: str
    name: str
    summary: str
    serve: Callable[[Any], Awaitable[Response]]
    """Answers an `Exchange`."""
    event: str = ""
    """The event that it calls; empty for what everybody is told without a token."""
    body: Any = None
    """A type, or an `EventBody`; None: no body is read."""
    answer: Any = None
    """A type, or a media type when the answer is not JSON."""
    status: int = 200
    problems: tuple[int, ...] = ()
    """The statuses of its failures."""
    query: tuple[QueryParameter, ...] = ()
    is_tagged: bool = False
    """Whether its answers have an ETag."""

    @property
    def parameters(self) -> list[str]:
        """The names of the path parameters."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


def shape(name: str) -> Callable[[_Shape], _Shape]:
    """Publish the decorated type under `name`."""

    def named(kind: _Shape) -> _Shape:
        kind.__name__ = name
        return kind

    return named


def document(operations: Iterable[Operation], request_type: RequestType) -> dict[str, Any]:
    """The whole document.

    Args:
        operations: what is described.
        request_type: looks up the request types of events.
    """
    every = [
        msgspec.structs.replace(one, body=_event_body(one, request_type)) for one in operations
    ]
    types = [kind for one in every for kind in (one.body, one.answer) if _is_struct(kind)]
    _, schemas = msgspec.json.schema_components([*types, ProblemBody], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for one in every:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "remit",
            "version": __version__,
            "description": "Every route is the translation of an event; see the reference.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {_schema_name(name): _published(one) for name, one in schemas.items()},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def page(operations: Iterable[Operation]) -> bytes:
    """The operations as one HTML page, without a script and without anything from elsewhere."""
    rows = "".join(
        f"<tr><td><code>{escape(one.method)}</code></td><td><code>{escape(one.path)}</code></td>"
        f"<td>{escape(one.summary)}</td><td><code>{escape(one.event or '-')}</code></td></tr>\n"
        for one in operations
    )
    return _PAGE.replace("{rows}", rows).replace("{version}", escape(__version__)).encode()


def _operation(one: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "security": [{"bearer": []}] if one.event else [],
        "responses": _responses(one),
    }
    if one.name == "metrics":
        found["security"].append({})
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in one.parameters
    ]
    parameters += [
        {"name": asked.name, "in": "query", "schema": asked.schema, "description": asked.text}
        for asked in one.query
    ]
    if parameters:
        found["parameters"] = parameters
    if one.body is not None:
        found["requestBody"] = {"content": {JSON: {"schema": _schema(one.body)}}}
    return found


def _responses(one: Operation) -> dict[str, Any]:
    is_text = isinstance(one.answer, str)
    media_type = one.answer if is_text else JSON
    schema = {"type": "string"} if is_text else _schema(one.answer)
    good: dict[str, Any] = {"description": "Good.", "content": {media_type: {"schema": schema}}}
    if one.event:
        good["headers"] = {
            "Remit-Decision": _text_header("the id of the decision that allowed it"),
            "Remit-Warning": _text_header("what will not work for ever, such as an old name"),
        }
    if one.is_tagged:
        good["headers"]["ETag"] = _text_header("the same for as long as the body is")
    found = {str(int(one.status)): good}
    if one.is_tagged:
        found["304"] = {"description": "As the tag in If-None-Match says."}
    problem = {PROBLEM_JSON: {"schema": _schema(ProblemBody)}}
    for status in one.problems:
        found[str(status)] = {"description": f"{HTTPStatus(status).phrase}.", "content": problem}
    if one.name == "readyz":
        found["503"] = good | {"description": "Not ready."}
    return dict(sorted(found.items()))


def _text_header(text: str) -> dict[str, Any]:
    return {"description": text, "schema": {"type": "string"}}


def _schema(kind: Any) -> dict[str, Any]:
    if kind is Any:
        return {}
    if _is_struct(kind):
        return {"$ref": _REF.format(name=_schema_name(kind.__name__))}
    return dict(published(msgspec.json.schema(kind)))


def _published(schema: Any) -> Any:
    """A schema as others may read it, with the names of the document."""
    text = msgspec.json.encode(published(schema)).decode()
    for name, shown in _SCHEMA_NAMES.items():
        text = text.replace(f'"{_REF.format(name=name)}"', f'"{_REF.format(name=shown)}"')
        text = text.replace(f'"title":"{name}"', f'"title":"{shown}"')
    return msgspec.json.decode(text)


def _schema_name(name: str) -> str:
    return _SCHEMA_NAMES.get(name, name)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _event_body(one: Operation, request_type: RequestType) -> Any:
    """The type of an operation's body."""
    if not isinstance(one.body, EventBody):
        return one.body
    kind = request_type(one.event)
    if kind is None:
        return dict[str, Any]
    return _renamed(kind, one.body) if one.body.name else kind


def _renamed(kind: type[msgspec.Struct], body: EventBody) -> Any:
    """A request type with other names for fields."""
    fields: list[Any] = []
    for field in msgspec.structs.fields(kind):
        shown = body.renamed.get(field.name, field.name)
        if shown is None:
            continue
        if field.required:
            fields.append((shown, field.type))
        elif field.default is not msgspec.NODEFAULT:
            fields.append((shown, field.type, field.default))
        else:
            factory = msgspec.field(default_factory=field.default_factory)
            fields.append((shown, field.type, factory))
    made = msgspec.defstruct(body.name, fields, kw_only=True, forbid_unknown_fields=True)
    made.__doc__ = kind.__doc__
    return made


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>remit: HTTP API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #ccc; padding: .4rem; text-align: left; vertical-align: top }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } a { color: #8bf } }
</style></head><body>
<h1>remit {version}: HTTP API</h1>
<p>Every route is the translation of an event. Send <code>Authorization: Bearer TOKEN</code>;
<code>remit key token</code> makes one. The whole description:
<a href="/openapi.json">/openapi.json</a>.</p>
<table><thead><tr><th>method</th><th>path</th><th>what it does</th><th>event</th></tr></thead>
<tbody>
{rows}</tbody></table>
</body></html>
"""
