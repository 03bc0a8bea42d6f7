"""A language model behind HTTP: what is sent, what is tried again, what is kept, and where the key goes."""

from __future__ import annotations

import json
import threading
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from http_server import Answer, said, server
from lexent.errors import EndpointError, InputError
from lexent.lexicon.answer_cache import Prompt, Replies, ask
from lexent.lexicon.endpoint import Completion, Endpoint, UnansweredError

KEY = "sk-very-secret-1234"
HELLO = [{"role": "user", "content": "hello"}]


def endpoint(url: str, waits: list[float] | None = None, **settings: Any) -> Endpoint:
    sleep = (lambda seconds: None) if waits is None else waits.append
    return Endpoint(url, "small", **{"key": KEY, "timeout": 5.0, "sleep": sleep, **settings})


def prompts(n: int) -> list[Prompt]:
    return [Prompt(({"role": "user", "content": f"question {number}"},)) for number in range(n)]


def test_one_request() -> None:
    with server(lambda posted, number: said("a name", prompt_tokens=11)) as running:
        found = endpoint(running.url + "/").chat(HELLO, max_tokens=9)
    assert found == Completion("a name", 11, 3)
    assert running.paths == ["/v1/chat/completions"]
    assert running.posted == [{"model": "small", "messages": HELLO, "max_tokens": 9, "temperature": 0}]
    assert running.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_sent() -> None:
    with server(lambda posted, number: said("a name")) as running:
        endpoint(running.url, key=None).chat(HELLO)
    assert "Authorization" not in running.headers[0]


@pytest.mark.parametrize(
    "fault",
    [
        Answer(500, b"<html>oops</html>"),
        Answer(503, b""),
        Answer(429, b'{"error": {"message": "slow down"}}'),
        Answer(200, b"no json at all"),
        Answer(200, b'{"choices": []}'),
        Answer(200, b"[1]"),
        Answer(200, b'{"choices": [', cut=True),
    ],
)
def test_what_may_pass_is_tried_again(fault: Answer) -> None:
    waits: list[float] = []
    with server(lambda posted, number: fault if number < 2 else said("at last")) as running:
        assert endpoint(running.url, waits).chat(HELLO).text == "at last"
    assert len(running.posted) == 3
    assert 0.5 <= waits[0] <= 1.0 <= waits[1] <= 2.0  # longer each time


def test_the_server_may_ask_for_a_wait() -> None:
    answers = [
        Answer(429, headers={"Retry-After": "7"}),
        Answer(429, headers={"Retry-After": formatdate(time.time() + 30, usegmt=True)}),
        Answer(429, headers={"Retry-After": "soon"}),
        Answer(503, headers={"Retry-After": "86400"}),
        said("done"),
    ]
    waits: list[float] = []
    with server(lambda posted, number: answers[number]) as running:
        assert endpoint(running.url, waits).chat(HELLO).text == "done"
    assert waits[0] == 7
    assert 25 < waits[1] <= 30
    assert waits[2] <= 4
    assert waits[3] == 120  # no longer than is bearable


def test_a_slow_server_is_given_up_and_tried_again() -> None:
    with server(lambda posted, number: Answer(wait=1.0) if number == 0 else said("quick")) as running:
        assert endpoint(running.url, timeout=0.2).chat(HELLO).text == "quick"
    assert len(running.posted) == 2


def test_tries_end() -> None:
    broken = Answer(500, b'{"error": "broken"}')
    with (
        server(lambda posted, number: broken) as running,
        pytest.raises(UnansweredError, match="3 tries: HTTP 500 broken"),
    ):
        endpoint(running.url, retries=2).chat(HELLO)
    assert len(running.posted) == 3


def test_nobody_there() -> None:
    with pytest.raises(UnansweredError, match="is it running"):
        endpoint("http://127.0.0.1:9/v1", retries=1).chat(HELLO)


@pytest.mark.parametrize(
    ("code", "hint"), [(401, "OPENAI_API_KEY"), (403, "--model"), (404, "--base-url"), (400, "HTTP")]
)
def test_refusals_are_not_tried_again_and_hide_the_key(code: int, hint: str) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    with (
        server(lambda posted, number: Answer(code, body)) as running,
        pytest.raises(EndpointError, match=hint) as caught,
    ):
        endpoint(running.url).chat(HELLO)
    assert len(running.posted) == 1
    assert KEY not in str(caught.value)
    assert "***" in str(caught.value)
    assert KEY not in repr(endpoint(running.url))


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_the_key_does_not_follow_a_redirect(code: int) -> None:
    with server(lambda posted, number: said("caught")) as elsewhere:
        moved = Answer(code, headers={"Location": f"{elsewhere.url}/chat/completions"})
        with server(lambda posted, number: moved) as running, pytest.raises(EndpointError, match="points elsewhere"):
            endpoint(running.url).chat(HELLO)
    assert elsewhere.posted == []


def test_settings_that_a_model_does_not_know_are_changed() -> None:
    def behave(posted: dict[str, Any], number: int) -> Answer:
        if "max_tokens" in posted:
            return Answer(400, b'{"error": {"message": "use max_completion_tokens instead"}}')
        if "temperature" in posted:
            return Answer(400, b'{"error": {"message": "temperature is not supported"}}')
        return said("fine")

    with server(behave) as running:
        assert endpoint(running.url, retries=0).chat(HELLO, max_tokens=5).text == "fine"
    assert running.posted[-1] == {"model": "small", "messages": HELLO, "max_completion_tokens": 5}


@pytest.mark.parametrize("address", ["", "api.openai.com/v1", "file:///etc/passwd", "ftp://host/v1"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(InputError, match="is no address"):
        Endpoint(address, "small")


def test_a_model_needs_a_name() -> None:
    with pytest.raises(InputError, match="--model NAME"):
        Endpoint("http://127.0.0.1/v1", " ")


# --- many questions ----------------------------------------------------------------------------------------------


def test_answers_come_in_order_and_not_too_many_at_once() -> None:
    def behave(posted: dict[str, Any], number: int) -> Answer:
        answer = said(posted["messages"][0]["content"].upper())
        answer.wait = 0.05 if number % 2 else 0.01
        return answer

    done: list[int] = []
    with server(behave) as running, Replies() as replies:
        found = ask(prompts(12), endpoint=endpoint(running.url), replies=replies, concurrency=3, progress=done.append)
    assert [answer.text for answer in found if answer] == [f"QUESTION {number}" for number in range(12)]
    assert 1 < running.most_at_once <= 3
    assert sum(done) == 12


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "replies.jsonl"
    with server(lambda posted, number: said(f"answer {number}")) as running:
        for wanted in (5, 8, 8):
            with Replies(path) as replies:
                found = ask(prompts(wanted), endpoint=endpoint(running.url), replies=replies)
            assert None not in found
        assert len(running.posted) == 8
        with Replies(path) as replies:  # another model's answers are its own
            ask(prompts(1), endpoint=Endpoint(running.url, "other"), replies=replies)
        assert len(running.posted) == 9
    assert KEY not in path.read_text()


def test_half_a_line_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with server(lambda posted, number: said(f"answer {number}")) as running:
        with Replies(path) as replies:
            ask(prompts(4), endpoint=endpoint(running.url), replies=replies, concurrency=1)
        path.write_bytes(path.read_bytes()[:-20])
        with Replies(path) as replies:
            assert len(replies) == 3
            ask(prompts(4), endpoint=endpoint(running.url), replies=replies)
        assert len(running.posted) == 5
    with Replies(path) as replies:
        assert len(replies) == 4


def test_a_question_that_stays_unanswered_does_not_stop_the_others() -> None:
    def behave(posted: dict[str, Any], number: int) -> Answer:
        return Answer(500) if "question 2" in posted["messages"][0]["content"] else said("fine")

    with server(behave) as running, Replies() as replies:
        found = ask(prompts(6), endpoint=endpoint(running.url, retries=1), replies=replies, concurrency=2)
    assert [answer is None for answer in found] == [False, False, True, False, False, False]


def test_an_endpoint_that_is_down_ends_the_run_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    down = threading.Event()

    def behave(posted: dict[str, Any], number: int) -> Answer:
        if number == 3:
            down.set()
        return Answer(502) if down.is_set() else said("fine")

    with server(behave) as running:
        with Replies(path) as replies, pytest.raises(UnansweredError, match="type the same command again"):
            ask(prompts(30), endpoint=endpoint(running.url, retries=0), replies=replies, concurrency=1)
        assert 8 <= len(running.posted) <= 9  # three answers, five failures in a row, and perhaps one under way
        running.behave = lambda posted, number: said("fine")
        with Replies(path) as replies:
            assert len(replies) == 3
            assert None not in ask(prompts(30), endpoint=endpoint(running.url), replies=replies)
        assert 8 + 27 <= len(running.posted) <= 9 + 27


def test_a_wrong_key_ends_the_run_at_once() -> None:
    refused = pytest.raises(EndpointError, match="the key is missing or wrong")
    with server(lambda posted, number: Answer(401)) as running, Replies() as replies, refused:
        ask(prompts(50), endpoint=endpoint(running.url), replies=replies, concurrency=2)
    assert len(running.posted) <= 3
