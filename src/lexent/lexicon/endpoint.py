"""A language model behind any OpenAI-compatible endpoint: chat completions, with retries.

By the standard library alone: one request is one POST of JSON. The key goes to the given address only: redirects are
not followed, and messages of the server are shown with the key masked.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from lexent.errors import EndpointError, InputError

RETRIABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""HTTP statuses after which the same request may succeed later."""
MAX_WAIT_SECONDS = 120.0
"""Longest pause between two tries, whatever Retry-After says."""

Messages = Sequence[Mapping[str, str]]


class UnansweredError(EndpointError):
    """A request that was tried as often as allowed; another may still go well."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply of a model, and the tokens that it used."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model, and the settings of requests to it."""

    base_url: str
    """Up to and without /chat/completions, such as http://127.0.0.1:8080/v1."""
    model: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    """Seconds that one request may take."""
    retries: int = 6
    """How often a request that failed for a reason that may pass is sent again."""
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False, compare=False)

    def __post_init__(self) -> None:
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise InputError(
                f'--base-url "{self.base_url}" is no address; write it as https://api.openai.com/v1 or '
                "http://127.0.0.1:8080/v1"
            )
        if not self.model.strip():
            raise InputError("the model has no name; give the one that the endpoint knows: --model NAME")

    def chat(self, messages: Messages, *, max_tokens: int = 64) -> Completion:
        """One answer, at temperature 0. Raises an EndpointError where there is none."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [dict(message) for message in messages],
            "max_tokens": max_tokens,
            "temperature": 0,
        }
        tries, reason = 0, ""
        while tries <= self.retries:
            try:
                return _completion(self._post(body))
            except urllib.error.HTTPError as error:
                message = self._message(error)
                if error.code == 400 and _adapted(body, message):
                    continue  # not a failure: the model knows the setting by another name, or not at all
                if error.code not in RETRIABLE_STATUSES:
                    raise EndpointError(self._refused(error.code, message)) from None
                reason, wait = f"HTTP {error.code} {message}".strip(), _retry_after(error.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException) as error:  # refused, reset, cut short, timed out
                cause = getattr(error, "reason", None) or error
                reason, wait = self._clean(str(cause) or type(cause).__name__), None
            except ValueError as error:
                reason, wait = f"no completion in the answer ({error})", None
            tries += 1
            if tries <= self.retries:
                if wait is None:  # twice as long each time, at random a little less: clients should not return together
                    wait = min(60.0, 2.0 ** (tries - 1)) * random.uniform(0.5, 1.0)
                self.sleep(min(wait, MAX_WAIT_SECONDS))
        raise UnansweredError(
            f"no answer from {self.base_url} after {tries} tries: {reason}; is it running, and is this its address? "
            "what was answered so far is kept: type the same command again to go on"
        )

    def _post(self, body: Mapping[str, Any]) -> bytes:
        request = urllib.request.Request(f"{self.base_url.rstrip('/')}/chat/completions", json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        request.add_header("User-Agent", "lexent")
        if self.key:
            request.add_unredirected_header("Authorization", f"Bearer {self.key}")
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if is_local(self.base_url):  # proxies of the environment are not for this machine itself
            handlers.append(urllib.request.ProxyHandler({}))
        with urllib.request.build_opener(*handlers).open(request, timeout=self.timeout) as answer:
            found: bytes = answer.read()
            return found

    def _message(self, error: urllib.error.HTTPError) -> str:
        """The message of a failed request, on one line."""
        try:
            text = error.read(4096).decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return ""
        try:
            found = json.loads(text)
            inner = found.get("error", found) if isinstance(found, dict) else found
            text = str(inner.get("message", inner)) if isinstance(inner, dict) else str(inner)
        except ValueError:
            text = re.sub(r"<[^>]*>", " ", text)
        return self._clean(" ".join(text.split())[:300])

    def _clean(self, text: str) -> str:
        return text.replace(self.key, "***") if self.key else text

    def _refused(self, code: int, message: str) -> str:
        hints = {
            401: "the key is missing or wrong: set OPENAI_API_KEY, or name another variable: --key-env NAME",
            403: "the key may not use this model: check the key and --model",
            404: "no such address or model: check --base-url (it usually ends in /v1) and --model",
        }
        moved = "it points elsewhere, and a key is not sent on: give the new address: --base-url"
        hint = moved if 300 <= code < 400 else hints.get(code, "check --base-url and --model")
        return f"{self.base_url} refused the request: HTTP {code} {message}; {hint}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def is_local(base_url: str) -> bool:
    """Whether an endpoint is on this machine."""
    host = urlsplit(base_url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _completion(answer: bytes) -> Completion:
    """The first choice of an answer; a ValueError where it has none."""
    try:
        found = json.loads(answer)
        text = found["choices"][0]["message"]["content"]
        usage = found.get("usage") or {}
        counts = [int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return Completion(text if isinstance(text, str) else "", *counts)


def _adapted(body: dict[str, Any], message: str) -> bool:
    """Newer models call the limit otherwise, or allow no temperature: change that, once each."""
    if "max_tokens" in body and "max_completion_tokens" in message:
        body["max_completion_tokens"] = body.pop("max_tokens")
        return True
    return "temperature" in message and body.pop("temperature", None) is not None


def _retry_after(header: str | None) -> float | None:
    """Seconds, from a Retry-After header: a number or a date."""
    for seconds in (float, lambda date: parsedate_to_datetime(date).timestamp() - time.time()):
        with suppress(ValueError, TypeError):
            return max(0.0, seconds(header or ""))
    return None
