"""The reference of the HTTP API, read from the server's OpenAPI document."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEAD = """# HTTP API

Every request that `lexent serve` answers. This page is generated from the server's OpenAPI document, which a running
server gives at `/openapi.json`. [Serve an index](../serve.md) explains keys, limits, changes and bulk adding.

An error has a status of 400 or more and is `application/problem+json`: a [Problem](#problem) (RFC 9457).

"""
_METHODS = ("get", "post", "put", "patch", "delete")


def document() -> dict[str, Any]:
    """The OpenAPI document of a server. It needs an index, so one of a single text is made and removed."""
    import lexent
    from lexent.encoders import TinyEncoder
    from lexent.server.app import make

    encoder = TinyEncoder()
    lexicon = lexent.Lexicon.random(encoder, size=8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "papers.lexent"
        lexent.index([{"id": "1", "text": "one text"}], out=path, encoder=encoder, lexicon=lexicon).close()
        found: dict[str, Any] = make([path], encoder=encoder, lexicon=lexicon).openapi()
    return found


def page() -> str:
    """The page: the statuses of errors, the requests by their tags, then the bodies and replies that they name."""
    schema = document()
    errors: dict[str, str] = {}
    operations: dict[str, list[str]] = {}
    for path, item in schema["paths"].items():
        for method in (name for name in _METHODS if name in item):
            (tag, *_) = item[method].get("tags") or ["other"]
            operations.setdefault(tag, []).append(_operation(method, path, item[method]))
            for status, reply in item[method]["responses"].items():
                if status >= "4":
                    errors.setdefault(status, reply["description"])
    parts = ["| Status | Error |", "|---|---|", *(f"| {key} | {_cell(errors[key])} |" for key in sorted(errors)), ""]
    parts += [f"## {tag.capitalize()}\n\n" + "\n".join(found) for tag, found in operations.items()]
    parts.append("## Bodies and replies\n")
    parts += [_schema(name, body) for name, body in schema.get("components", {}).get("schemas", {}).items()]
    return HEAD + "\n".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    lines = [f"### `{method.upper()} {path}`\n", f"{operation.get('description', '').strip()}\n"]
    parameters = operation.get("parameters", [])
    if parameters:
        lines += ["| Parameter | In | Type | Default | Effect |", "|---|---|---|---|---|"]
        for each in parameters:
            kind = each["schema"]
            name = f"`{each['name']}`" + (" (required)" if each.get("required") and each["in"] != "path" else "")
            lines.append(f"| {name} | {each['in']} | {_type(kind)} | {_default(kind)} | {_meaning(each, kind)} |")
        lines.append("")
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines.append(f"- Body: {_type(content.get('schema', {}))}, `{kind}`")
    for status, reply in operation["responses"].items():
        for kind, content in reply.get("content", {}).items() if status < "4" else ():
            lines.append(f"- Reply {status}: {_type(content.get('schema', {}))}, `{kind}`")
    lines.append(f"- Errors: {', '.join(sorted(key for key in operation['responses'] if key >= '4')) or 'none'}")
    return "\n".join(lines) + "\n"


def _schema(name: str, body: dict[str, Any]) -> str:
    lines = [f"### {name}\n", f"{body.get('description', '').strip()}\n"]
    if body.get("properties"):
        lines += ["| Field | Type | Default | Meaning |", "|---|---|---|---|"]
        for field, kind in body["properties"].items():
            label = f"`{field}`" + (" (required)" if field in body.get("required", ()) else "")
            lines.append(f"| {label} | {_type(kind)} | {_default(kind)} | {_meaning(kind, kind)} |")
    return "\n".join(lines) + "\n"


def _type(kind: dict[str, Any]) -> str:
    """A JSON schema's type in words, with links to the types that the page describes."""
    if "$ref" in kind:
        name = kind["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in kind or "oneOf" in kind:
        return " or ".join(dict.fromkeys(_type(each) for each in kind.get("anyOf", kind.get("oneOf"))))
    if "enum" in kind:
        return " or ".join(f"`{json.dumps(value)}`" for value in kind["enum"])
    if "const" in kind:
        return f"`{json.dumps(kind['const'])}`"
    if kind.get("type") == "array":
        return f"array of {_type(kind.get('items', {}))}"
    if kind.get("type") == "object" and isinstance(kind.get("additionalProperties"), dict):
        return f"object of {_type(kind['additionalProperties'])}"
    return str(kind.get("type", "any"))


def _default(kind: dict[str, Any]) -> str:
    return f"`{json.dumps(kind['default'])}`" if kind.get("default") is not None else ""


def _meaning(described: dict[str, Any], kind: dict[str, Any]) -> str:
    return "; ".join(filter(None, [_cell(described.get("description", "")).rstrip("."), *_bounds(kind)]))


def _bounds(kind: dict[str, Any]) -> Iterator[str]:
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "above",
        "exclusiveMaximum": "below",
        "minLength": "characters: at least",
        "maxLength": "characters: at most",
        "minItems": "items: at least",
        "maxItems": "items: at most",
    }
    for each in (kind, *kind.get("anyOf", ())):
        for name, word in words.items():
            if name in each:
                yield f"{word} {each[name]:,.15g}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
