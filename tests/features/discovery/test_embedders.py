"""Other models than the shipped one: a server of vectors, and MiniLM where its weights are."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.features.discovery.catalogues import OFFICE

from remit.errors import SettingsError
from remit.features.discovery.embedders import Blend, MiniLm, RemoteVectors, minilm_folder
from remit.features.discovery.embedding import EmbeddingError, VectorCache, np
from remit.features.discovery.index import Indexer
from remit.features.discovery.rank import Ranker, best
from remit.features.discovery.view import View

needs_weights = pytest.mark.skipif(
    minilm_folder() is None, reason="the extra 'minilm' is not installed"
)


class Answers(BaseHTTPRequestHandler):
    """A real server that embeds a text by its first letters, out of order as servers may."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        asked = json.loads(self.rfile.read(length))
        self.server.seen.append((self.path, self.headers.get("Authorization"), asked["model"]))  # type: ignore[attr-defined]
        body = json.dumps(self.server.answer(asked["input"])).encode()  # type: ignore[attr-defined]
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        pass


def _embedded(texts: list[str]) -> dict[str, Any]:
    rows = [
        {"index": at, "embedding": [text.count(letter) + 0.1 for letter in "aeiou"]}
        for at, text in enumerate(texts)
    ]
    return {"data": rows[::-1]}


@contextmanager
def serving(answer: Any = _embedded, status: int = 200) -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    server.seen, server.answer, server.status = [], answer, status  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _url(server: HTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/v1"


def test_a_server_is_asked_as_openai_is() -> None:
    with serving() as server:
        model = RemoteVectors(_url(server), "small", "secret")
        rows = model.embed(["aaa", "eee", ""])
        assert server.seen[-1] == ("/v1/embeddings", "Bearer secret", "small")  # type: ignore[attr-defined]
    assert model.dimensions == 5
    assert rows[0].argmax() == 0
    assert rows[1].argmax() == 1
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1])


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(_embedded, 500, id="an-error"),
        pytest.param(lambda _texts: {"data": []}, 200, id="no-vectors"),
        pytest.param(lambda _texts: ["?"], 200, id="another-shape"),
        pytest.param(lambda _texts: {"data": [{"index": 0}]}, 200, id="no-embedding"),
    ],
)
def test_a_server_that_answers_wrongly_is_refused_at_the_start(answer: Any, status: int) -> None:
    with serving(answer, status) as server, pytest.raises(EmbeddingError):
        RemoteVectors(_url(server), "small")


def test_an_address_that_is_none_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(SettingsError):
        RemoteVectors("file:///etc/passwd", "small")


def test_a_server_that_is_gone_costs_the_vectors_and_nothing_else() -> None:
    with serving() as server:
        model = RemoteVectors(_url(server), "small")
    indexer = Indexer(model, VectorCache())
    index = indexer.build(OFFICE)
    assert index.vectors is None
    assert "did not answer" in indexer.problem
    view = View(index, np.ones(len(index), np.bool_))
    rows = best(Ranker(model).rank(view, "weather", view.allowed).fused, view, 1, 0.3)
    assert index.descriptors[rows[0]].name == "get_weather"


def test_a_server_that_dies_between_index_and_question_is_done_without() -> None:
    with serving() as server:
        model = RemoteVectors(_url(server), "small")
        index = Indexer(model, VectorCache()).build(OFFICE)
    view = View(index, np.ones(len(index), np.bool_))
    ranker = Ranker(model)
    ranker.embed("weather")
    rows = best(ranker.rank(view, "weather", view.allowed).fused, view, 1, 0.3)
    assert index.descriptors[rows[0]].name == "get_weather"


@needs_weights
def test_minilm_agrees_with_the_published_figures() -> None:
    texts = [
        "The weather is lovely today.",
        "It's so sunny outside!",
        "He drove to the stadium.",
    ]
    rows = MiniLm().embed(texts)
    assert (rows @ rows.T)[0] == pytest.approx([1.0, 0.6660, 0.1046], abs=2e-3)


@needs_weights
def test_the_blend_is_the_mean_of_both_cosines() -> None:
    one, other = Blend().embed(["heavy rain", "weather forecast"])
    assert np.linalg.norm(one) == pytest.approx(1.0, abs=1e-4)
    assert one @ other > 0.2


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads under /proc")
def test_numpy_starts_no_threads_of_its_own() -> None:
    script = "import os, remit.features.discovery.engine; print(len(os.listdir('/proc/self/task')))"
    env = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "1"
