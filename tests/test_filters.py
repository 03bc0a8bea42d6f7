"""Filters: what is given is checked, and the documents found are those that a plain reading of the metadata finds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexent
import small
from lexent.cli.filters import filter_of
from lexent.encoders import TinyEncoder
from lexent.errors import InputError
from lexent.indexing import field_index
from lexent.indexing.document_store import Documents, DocumentWriter
from lexent.indexing.filters import MAX_NESTING, OPERATORS, Filter
from lexent.types import Document

# --- the slow twin -----------------------------------------------------------------------------------------------


def values(metadata: Any, path: str | None = None) -> Iterator[tuple[str, Any]]:
    """Every name and value of some metadata."""
    if isinstance(metadata, dict):
        for name, value in metadata.items():
            yield from values(value, name if path is None else f"{path}.{name}")
    elif isinstance(metadata, list):
        for element in metadata:
            yield from values(element, path)
    elif metadata is not None:
        assert path is not None
        yield path, metadata


def kind(value: Any) -> type:
    return type(value) if isinstance(value, bool | str) else float


def same(a: Any, b: Any) -> bool:
    return kind(a) is kind(b) and a == b


def within(value: Any, operator: str, bound: Any) -> bool:
    if kind(value) is not kind(bound):
        return False
    return bool({"gt": value > bound, "gte": value >= bound, "lt": value < bound, "lte": value <= bound}[operator])


def holds(where: dict[str, Any], metadata: dict[str, Any]) -> bool:
    return all(holds_part(name, value, metadata) for name, value in where.items())


def holds_part(name: str, value: Any, metadata: dict[str, Any]) -> bool:
    if name == "not":
        return not holds(value, metadata)
    if name in ("and", "or"):
        return (all if name == "and" else any)(holds(each, metadata) for each in value)
    found = [element for path, element in values(metadata) if path == name]
    if isinstance(value, list):
        value = {"in": value}
    if not isinstance(value, dict):
        value = {"eq": value}
    bounds = {operator: bound for operator, bound in value.items() if operator in ("gt", "gte", "lt", "lte")}
    good = not bounds or any(all(within(each, *bound) for bound in bounds.items()) for each in found)
    for operator, given_value in value.items():
        if operator in ("eq", "ne", "in", "nin"):
            wanted = given_value if operator in ("in", "nin") else [given_value]
            some = any(same(each, other) for each in found for other in wanted)
            good = good and some is (operator in ("eq", "in"))
        elif operator == "exists":
            good = good and bool(found) is given_value
    return good


# --- random metadata and filters ---------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "a.b", "ä 'x\";--", ""])
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -0.0, 2.0**53, 2**53 + 1, -(2**63), 2**63 - 1, 2.0**63, 2**63 + 1, 2**64 - 1, 1e300]),
)
TEXTS = st.sampled_from(["", "1", "1.0", "true", "True", "a", "b", "é", "e\u0301", "\U0001f600", "\uffff", "a\0b", "'"])
SCALARS = st.one_of(st.booleans(), NUMBERS, TEXTS)
METADATA = st.dictionaries(
    NAMES,
    st.recursive(
        st.one_of(st.none(), SCALARS),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=2)),
        max_leaves=4,
    ),
    max_size=3,
)
OPERATIONS = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "eq": SCALARS,
            "ne": SCALARS,
            "in": st.lists(SCALARS, max_size=3),
            "nin": st.lists(SCALARS, max_size=3),
            "exists": st.booleans(),
        },
    ),
    *(st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), bound, max_size=4) for bound in (NUMBERS, TEXTS)),
).filter(bool)
FIELD_FILTERS = st.dictionaries(NAMES, st.one_of(SCALARS, st.lists(SCALARS, max_size=3), OPERATIONS), max_size=2)
FILTERS = st.recursive(
    FIELD_FILTERS,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"and": st.lists(inner, min_size=1, max_size=3)}),
        st.builds(
            lambda parts, beside: {"or": parts, **beside}, st.lists(inner, min_size=1, max_size=3), FIELD_FILTERS
        ),
    ),
    max_leaves=5,
)


def store(metadata: list[dict[str, Any]], folder: Path) -> Documents:
    folder.mkdir(exist_ok=True)
    with DocumentWriter(folder) as writer:
        writer.add([Document(f"d{number}", "text", metadata=each) for number, each in enumerate(metadata)])
    return Documents(folder)


@settings(deadline=None, max_examples=200)
@given(metadata=st.lists(METADATA, max_size=8), wheres=st.lists(FILTERS, min_size=1, max_size=8))
def test_matching_is_what_a_plain_reading_finds(metadata: list[dict[str, Any]], wheres: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        documents = store(metadata, Path(folder))
        for where in wheres:
            found = documents.matching(Filter.of(where))
            assert found.tolist() == [holds(where, each) for each in metadata], where
            again = documents.matching(Filter.of(json.loads(json.dumps(where))))
            np.testing.assert_array_equal(found, again)
        assert documents.field_names() == sorted({name for each in metadata for name, _ in values(each)})
        documents.close()


@pytest.mark.parametrize("held", [1, 3, field_index.BUFFERED_POSITIONS])
def test_lists_longer_than_a_row_and_written_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr("lexent.indexing.field_index.BUFFERED_POSITIONS", held)
    metadata = [{"n": number, "even": number % 2 == 0, "tag": ["x", "x", number % 3]} for number in range(1000)]
    documents = store(metadata, tmp_path)
    for where in ({"even": True}, {"tag": "x"}, {"tag": 1}, {"n": {"gt": 17, "lte": 900}}, {"even": {"exists": True}}):
        assert documents.matching(Filter.of(where)).tolist() == [holds(where, each) for each in metadata], where


# --- traps -------------------------------------------------------------------------------------------------------

KINDS: list[dict[str, Any]] = [
    {"v": True},
    {"v": 1},
    {"v": 1.0},
    {"v": "1"},
    {"v": "true"},
    {"v": 0},
    {"v": False},
    {"v": None},
    {},
    {"v": ""},
    {"v": 2**64 - 1},
    {"v": 2**63 - 1},
    {"v": 2.0**64},
]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"v": True}, [0]),
        ({"v": 1}, [1, 2]),
        ({"v": 1.0}, [1, 2]),
        ({"v": "1"}, [3]),
        ({"v": False}, [6]),
        ({"v": 0}, [5]),
        ({"v": ""}, [9]),
        ({"v": {"exists": False}}, [7, 8]),
        ({"v": {"gte": 1}}, [1, 2, 10, 11, 12]),
        ({"v": {"gte": 2**63 - 1, "lt": 2.0**64}}, [10, 11]),
        ({"v": {"gt": 2**63 - 1}}, [10, 12]),
        ({"v": {"lte": 1}}, [1, 2, 5]),
        ({"v": {"gt": "1"}}, [4]),
        ({"v": {"lt": "2"}}, [3, 9]),
        ({"v": {"gt": 5, "lt": 3}}, []),
        ({"v": {"ne": 1}}, [0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        ({"v": {"in": []}}, []),
        ({"v": [True, "1"]}, [0, 3]),
        ({}, list(range(13))),
        ({"not": {}}, []),
        ({"unknown": 1}, []),
        ({"unknown": {"nin": [1]}}, list(range(13))),
        ({"v": np.int64(1)}, [1, 2]),
        ({"v": np.array([0, 1])}, [1, 2, 5]),
    ],
)
def test_kinds_do_not_mix(tmp_path: Path, where: dict[str, Any], expected: list[int]) -> None:
    documents = store(KINDS, tmp_path)
    assert np.flatnonzero(documents.matching(Filter.of(where))).tolist() == expected


def test_bounds_hold_for_one_element(tmp_path: Path) -> None:
    documents = store([{"year": [1990, 2020]}, {"year": [2005]}], tmp_path)
    assert documents.matching(Filter.of({"year": {"gt": 2000, "lt": 2010}})).tolist() == [False, True]
    apart = Filter.of({"and": [{"year": {"gt": 2000}}, {"year": {"lt": 2010}}]})
    assert documents.matching(apart).tolist() == [True, True]


def test_dates_compare_as_the_text_they_are_kept_as(tmp_path: Path) -> None:
    documents = store([{"day": date(2020, 5, 1)}, {"day": "2021-01-01"}], tmp_path)
    assert documents.matching(Filter.of({"day": {"gte": date(2020, 6, 1)}})).tolist() == [False, True]


@pytest.mark.parametrize("name", ["'; DROP TABLE fields; --", '"', "value", "v') OR 1=1 --", "a\0b", "名前", "%", "?"])
def test_names_and_values_are_never_sql(tmp_path: Path, name: str) -> None:
    documents = store([{name: name}, {"v": "other"}], tmp_path)
    assert documents.field_names() == sorted([name, "v"])
    assert documents.matching(Filter.of({name: name})).tolist() == [True, False]
    assert documents.matching(Filter.of({name: {"gte": name}})).tolist() == [True, False]
    assert documents.matching(Filter.of({"v": name})).tolist() == [False, False]
    assert documents.field_kinds(name) == {"text"}


def test_equal_filters_are_one() -> None:
    one = Filter.of({"a": [1, 2], "and": [{"b": "x"}, {"c": {"gte": 1, "gt": 0}}]})
    other = Filter.of({"and": [{"c": {"gte": 1.0}}, {"b": {"eq": "x"}, "a": {"in": [2, 1, 1]}}]})
    assert one == other
    assert hash(one) == hash(other)
    assert Filter.of({"a": 1}) != Filter.of({"a": True})
    assert Filter.of({"not": {"not": {"a": 1}}}) == Filter.of({"or": [{"a": 1}]}) == Filter.of({"a": 1})
    assert Filter.of(one) is one


def test_what_a_filter_asks_for() -> None:
    where = Filter.of(
        {"a": 1, "or": [{"b": {"lt": "x"}}, {"not": {"c": [True, 2]}}], "d": {"exists": True}, "e": {"lt": 5}}
    )
    assert where.names == {"a", "b", "c", "d", "e"}
    assert where.kinds == {"a": {"number"}, "b": {"text"}, "c": {"boolean", "number"}, "d": set(), "e": {"number"}}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("lang=en", "a filter is a mapping of fields"),
        ([{"a": 1}], "a filter is a mapping of fields"),
        ({1: 2}, "names fields as text"),
        ({"a": {}}, 'filter on "a" has no operator; give one of eq, ne'),
        ({"a": {"$gte": 1}}, r'no operator "\$gte" in the filter on "a"; did you mean "gte"\? there are eq, ne, in'),
        ({"author": {"name": "x"}}, 'a field within a field is written "author.name"'),
        ({"a": {1: 2}}, 'no operator "1"'),
        ({"a": {"gte": [1]}}, r'"gte" on "a" takes a text, a number, true or false; given \[1\], a list'),
        ({"a": {"gte": True}}, '"gte" on "a" takes a number or a text; given True'),
        ({"a": {"gte": 1, "lt": "x"}}, 'bounds on "a" are a number and a text'),
        ({"a": {"in": "abc"}}, '"in" on "a" takes a list of values'),
        ({"a": {"exists": 1}}, '"exists" on "a" takes true or false; given 1'),
        ({"a": None}, r'to find documents without it: \{"a": \{"exists": false\}\}'),
        ({"a": [None]}, "has no value"),
        ({"a": [[1]]}, '"in" on "a" takes a text'),
        ({"$or": [{"a": 1}]}, "filters are joined by the keys and, or and not"),
        ({"a": float("nan")}, "takes a finite number; given nan"),
        ({"a": {"lt": float("inf")}}, "takes a finite number; given inf"),
        ({"a": 2**64}, "at most 64 bits; given 18446744073709551616"),
        ({"a": -(2**63) - 1}, "at most 64 bits"),
        ({"a": 10**10_000}, "at most 64 bits"),
        ({"a": object()}, "takes a text, a number, true or false"),
        ({"a": "\ud800"}, "not valid Unicode"),
        ({"\ud800": 1}, "not valid Unicode"),
        ({"and": []}, '"and" joins a list of filters'),
        ({"or": {"a": 1}}, '"or" joins a list of filters'),
        ({"not": [{"a": 1}]}, "a filter is a mapping of fields"),
    ],
)
def test_what_is_no_filter_is_refused(where: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Filter.of(where)


def test_deep_filters_are_refused() -> None:
    where: dict[str, Any] = {"a": 1}
    for _ in range(MAX_NESTING):
        where = {"not": where}
    Filter.of(where)
    for _ in range(100_000):
        where = {"and": [where, where]}
    with pytest.raises(InputError, match=f"at most {MAX_NESTING} deep"):
        Filter.of(where)


def test_deep_values_are_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InputError, match="too large to show"):
        Filter.of({"a": value})


def test_every_operator_is_listed() -> None:
    with pytest.raises(InputError, match=", ".join(OPERATORS[:-1]) + " and exists"):
        Filter.of({"a": {"near": 1}})


# --- the command line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (None, None),
        ([], None),
        (["lang=en"], {"lang": {"eq": "en"}}),
        ([" lang == en "], {"lang": {"eq": "en"}}),
        (["lang!=en"], {"lang": {"ne": "en"}}),
        (["year>=2019"], {"year": {"gte": 2019}}),
        (["x<-1.5e3"], {"x": {"lt": -1500.0}}),
        (["year>=2019", "year<2023", "lang=en"], {"year": {"gte": 2019, "lt": 2023}, "lang": {"eq": "en"}}),
        (["tag=a,b"], {"tag": {"in": ["a", "b"]}}),
        (["tag!=a, 2 ,true"], {"tag": {"nin": ["a", 2, True]}}),
        (['tag="a, b",c'], {"tag": {"in": ["a, b", "c"]}}),
        (["tag=a", "tag=b"], {"and": [{"tag": {"eq": "a"}}, {"tag": {"eq": "b"}}]}),
        (["done=true"], {"done": {"eq": True}}),
        (['done="true"'], {"done": {"eq": "true"}}),
        (['n="1"'], {"n": {"eq": "1"}}),
        ([r'n="a \"b\" \\"'], {"n": {"eq": 'a "b" \\'}}),
        (['n=""'], {"n": {"eq": ""}}),
        (["zip=0123"], {"zip": {"eq": "0123"}}),
        (["day>=2020-01-01"], {"day": {"gte": "2020-01-01"}}),
        (["author.name=Ada Lovelace"], {"author.name": {"eq": "Ada Lovelace"}}),
        (["url=http://x?a=b"], {"url": {"eq": "http://x?a=b"}}),
        (['{"or": [{"a": 1}, {"b": 2}]}'], {"or": [{"a": 1}, {"b": 2}]}),
        (['{"or": [{"a": 1}]}', "b=2"], {"or": [{"a": 1}], "b": {"eq": 2}}),
        (["b=2", '{"or": [{"a": 1}]}'], {"and": [{"b": {"eq": 2}}, {"or": [{"a": 1}]}]}),
        (['{"a": 1}', "a>0"], {"and": [{"a": 1}, {"a": {"gt": 0}}]}),
        (["{}"], {}),
    ],
)
def test_flags_become_a_filter(texts: list[str] | None, expected: dict[str, Any] | None) -> None:
    found = filter_of(texts)
    assert found == expected
    assert repr(found) == repr(expected)  # 1 is not True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "compares nothing; write FIELD=VALUE"),
        ("lang", '"lang" compares nothing; .*{"lang": {"exists": true}}'),
        ("=en", "compares nothing"),
        ("lang=", "a value is missing; for empty text write"),
        ("tag=a,,b", "a value is missing"),
        ('tag="a', "quotes do not fit together"),
        ('tag="a"b', "quotes do not fit together"),
        ("year>=1,2", ">= takes one value"),
        ("year>=true", '"gte" on "year" takes a number or a text; given True'),
        ("n=123456789012345678901234", "at most 64 bits"),
        ("n=1e999", "finite"),
        ("not=1", '"not" joins filters'),
        ('{"a": 1', "broken JSON .* single quotes"),
        ("{'a': 1}", "broken JSON"),
        ('{"a": {"near": 1}}', 'no operator "near"'),
        ('{"a":' * 100_000, "broken JSON"),
        ("a=\udcff", r'--filter "a=\\udcff": the filter holds text that is not valid Unicode'),
    ],
)
def test_flags_that_are_no_filter_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        filter_of([text])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_bounds_of_two_kinds_are_refused_together() -> None:
    with pytest.raises(InputError, match="a number and a text"):
        filter_of(["year>=2019", "year<x"])


DATED = [
    {"id": "a", "text": "yeast", "day": "2019-05-31", "at": "2019-05-31T10:30:00", "note": "2019-05-31"},
    {"id": "b", "text": "yeast", "day": "2020-01-02", "at": "2020-01-02T08:00:00+00:00", "note": "later"},
]


def test_a_field_of_dates_is_compared_with_dates_alone(tmp_path: Path) -> None:
    with lexent.index(DATED, out=tmp_path / "i", encoder=TinyEncoder(), lexicon=small.lexicon()) as index:

        def found(where: dict[str, Any]) -> set[str]:
            return {hit.id for hit in index.search("yeast", filter=where)}

        allowed = "allowed: a date, its start or a date with a time, such as 2019-05-31, 2019-05 or 2019-05-31T10:30:00"
        for wrong in ("banana", "2019/05/31", "31.5.2019", "2019-13-01", "2019-05-31banana", "May 2019"):
            for where in ({"day": {"gte": wrong}}, {"at": {"lt": wrong}}, {"day": wrong}, {"not": {"day": [wrong]}}):
                with pytest.raises(InputError, match='holds dates, and the filter compares it with "') as caught:
                    found(where)
                assert f'"{wrong}"; {allowed}' in str(caught.value)
        assert found({"day": {"gte": "2020"}}) == {"b"}
        assert found({"day": {"lt": "2019-06"}}) == {"a"}
        assert found({"day": "2019-05-31"}) == {"a"}
        assert found({"at": {"gte": "2019-05-31T10:30:00", "lt": "2020-01-02T07"}}) == {"a"}
        assert found({"at": {"gte": "2020-01-02T08:00:00+00:00"}}) == {"b"}
        assert found({"day": {"exists": True}}) == {"a", "b"}
        assert found({"note": {"gte": "banana"}}) == {"b"}, "a field that has other texts, too"


TIMES = ["2018-12-31", "2019-05-30", "2019-05-31T00:00:00", "2019-05-31T09:15:00", "2019-06-01", "2020-01-01"]
OF_DATES: dict[str, Callable[[str, str], bool]] = {
    "eq": lambda value, given: value[: len(given)] == given,
    "ne": lambda value, given: value[: len(given)] != given,
    "gt": lambda value, given: value[: len(given)] > given,
    "gte": lambda value, given: value >= given,
    "lt": lambda value, given: value < given,
    "lte": lambda value, given: value[: len(given)] <= given,
}


@pytest.mark.parametrize("operator", OF_DATES)
def test_a_date_that_stops_early_means_all_within_it(tmp_path: Path, operator: str) -> None:
    rows = [{"id": day, "text": "yeast", "day": day} for day in TIMES]
    holds = OF_DATES[operator]
    with lexent.index(rows, out=tmp_path / "i", encoder=TinyEncoder(), lexicon=small.lexicon()) as index:
        for given in (*TIMES, "2019", "2019-05", "2019-05-31", "2019-05-31T09", "2021"):
            expected = {day for day in TIMES if holds(day, given)}
            assert {hit.id for hit in index.search("yeast", filter={"day": {operator: given}})} == expected, given
        for year in (2018, 2019, 2022):
            expected = {day for day in TIMES if holds(day, str(year))}
            assert {hit.id for hit in index.search("yeast", filter={"day": {operator: year}})} == expected, year
        for wrong in (5, 2019.5, 2**62, True):
            with pytest.raises(InputError, match='"day" holds date values, not'):
                index.search("yeast", filter={"day": wrong})
        assert index.delete(filter={"day": {"lte": "2019-05-31"}}) == 4
