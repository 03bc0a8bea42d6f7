"""The explorer page in a real browser, over a real server: what a person does, and what they then see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlparse

import httpx
import pytest

import small
from browser import Tab, browsing
from lexent.server.keys import Keys
from lexent.server.settings import Settings
from lexent.types import Document
from serving import serving

QUERY = "yeast dough light"
EVIL = '<img src=x onerror="window.hurt=1"><script>window.hurt=2</script>'


def documents() -> list[Document]:
    evil = Document(id='evil"><b>', title=f"Evil {EVIL}", text=f"zebra {EVIL} zebra", metadata={"note": EVIL, "n": 7})
    wide = Document(id="wide", title="Wide 😀 signs", text="😀 emoji 𝒳 yeast dough oven")
    long = Document(id="long", text="filler words come first " * 40 + "walrus tusk " + "and then others " * 40)
    return [*small.documents(40), evil, wide, long]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("explorer")
    small.build(folder / "docs.lexent", documents(), extras=["dense", "lexical"]).close()
    small.build(folder / "plain.lexent", small.documents(12)).close()
    small.build(folder / "tokens.lexent", recipe="ssr").close()
    little = [Document(id=f"of{word}", text=f"the of and to the of and to {word}") for word in ("yeast", "king", "bed")]
    small.build(folder / "form.lexent", [*small.documents(20), *little]).close()
    languages = ("de", "en", "fr")
    facts = [
        replace(one, metadata={**one.metadata, "lang": languages[row % 3]}) for row, one in enumerate(small.documents())
    ]
    small.build(folder / "facts.lexent", facts).close()
    with serving([folder / f"{name}.lexent" for name in ("docs", "plain", "tokens", "form", "facts")]) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as found:
        yield found


@pytest.fixture
def tab(browser: Any, client: httpx.Client) -> Iterator[Tab]:
    """A tab that must end without an error, and without having asked anyone but the server."""
    base = f"http://127.0.0.1:{client.base_url.port}"
    found = Tab(browser, base)
    yield found
    found.close()
    assert found.errors == []
    assert found.outside == []


def hits(page: Any) -> list[str]:
    return [str(one) for one in page.locator(".hit").evaluate_all("all => all.map(one => one.dataset.key)")]


def searched(client: httpx.Client, **body: Any) -> Any:
    return client.post("/v1/indexes/docs/search", json={"query": QUERY, **body}).json()


def asked(client: httpx.Client, **body: Any) -> list[str]:
    return [hit["id"] for hit in searched(client, **body)["hits"]]


def label_of(client: httpx.Client, concept: int) -> str:
    return str(client.get(f"/v1/indexes/docs/concepts/{concept}").json()["label"])


def group_sliders(page: Any) -> Any:
    return page.locator(".slides input[data-group]")


def drag_to_the_end(page: Any, slider: Any) -> None:
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2, steps=6)
    page.mouse.up()
    settled(page)


def steer_of(page: Any) -> dict[str, float]:
    text = parse_qs(urlparse(page.url).query).get("steer", [""])[0]
    return {f"#{part.split(':')[0]}": float(part.split(":")[1]) for part in text.split(",") if part}


def eventually(page: Any, expression: str) -> None:
    """Waits until it is true. Playwright's own waiting evaluates strings in the page, which its policy forbids."""
    end = monotonic() + 20
    while not page.evaluate(expression):
        assert monotonic() < end, expression
        page.wait_for_timeout(20)


def settled(page: Any) -> None:
    """What was asked for is shown: the page marks what it waits for as busy, from the moment it is asked."""
    page.wait_for_load_state("networkidle")
    eventually(page, "document.querySelectorAll('[aria-busy]').length === 0")


# --- search ------------------------------------------------------------------------------------------------------


def test_a_search_shows_what_the_api_gives(tab: Tab, client: httpx.Client) -> None:
    page = tab.open("/")
    page.get_by_role("searchbox").fill(QUERY)
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    assert hits(page) == asked(client)
    assert f"q={QUERY.replace(' ', '+')}" in page.url
    first = searched(client)["hits"][0]
    card = page.locator(".hit").first
    assert card.locator(".score").inner_text() == f"{first['score']:.2f}"
    assert card.locator(".strength").inner_text() == f"strength {first['strength']:.2f}"
    part = first["groups"][0]
    assert " · ".join(part["label"].split(" · ")[:2]) in card.locator(".legend").inner_text()
    assert 1 < card.locator(".name").count() <= 7  # six lines, and the others
    widths = card.locator(".piece").evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    whole = card.locator(".bar").evaluate("one => one.getBoundingClientRect().width")
    assert sum(widths) == pytest.approx(whole, abs=len(widths) + 1)
    assert widths[0] / whole == pytest.approx(part["value"] / first["score"], abs=0.03)


def test_dragging_a_slider_gives_the_order_that_the_api_gives(tab: Tab, client: httpx.Client) -> None:
    page = tab.open(f"/search?q={QUERY}")
    page.wait_for_selector(".hit")
    before = hits(page)
    moved = False
    groups = [group for group in searched(client)["groups"] if not group["form"]][:6]
    wanted: dict[str, float] = {}
    for place, group in enumerate(groups):
        slider = group_sliders(page).nth(place)
        assert slider.get_attribute("aria-label") == f"How much {group['label']} counts"
        drag_to_the_end(page, slider)
        assert slider.get_attribute("aria-valuetext") == "4.0×"
        wanted |= {f"#{concept}": 4.0 for concept in group["concepts"]}
        assert steer_of(page) == wanted  # all concepts of the group
        eventually(page, "document.querySelectorAll('.hit .move').length > 0")
        assert hits(page) == asked(client, steer=wanted)
        assert page.locator(".panel summary .tag").inner_text() == f"{place + 1} changed"
        moved = moved or hits(page) != before
    assert moved
    ranks = {id: rank for rank, id in enumerate(before, 1)}
    for rank, id in enumerate(hits(page), 1):
        text = page.locator(".hit").nth(rank - 1).locator(".move").inner_text()
        was = ranks.get(id)
        shift = "new" if was is None else "=" if was == rank else f"{'▲' if was > rank else '▼'}{abs(was - rank)}"
        assert text == shift
    page.get_by_role("button", name="Reset").click()
    settled(page)
    assert hits(page) == before
    assert "steer" not in page.url


def test_a_groups_slider_moves_all_its_concepts(tab: Tab, client: httpx.Client) -> None:
    place, group = next((at, one) for at, one in enumerate(searched(client)["groups"]) if len(one["concepts"]) > 2)
    page = tab.open(f"/search?q={QUERY}")
    page.wait_for_selector(".hit")
    slider = group_sliders(page).nth(place)
    opener = page.get_by_role("button", name=group["label"], exact=True).and_(page.locator(".opener"))
    assert opener.get_attribute("aria-expanded") == "false"
    opener.press("Enter")
    assert opener.get_attribute("aria-expanded") == "true"
    members = page.locator(".members input")
    assert members.evaluate_all("all => all.map(one => Number(one.dataset.concept))") == group["concepts"]
    slider.press("End")
    settled(page)
    assert {one.get_attribute("aria-valuetext") for one in members.all()} == {"4.0×"}
    assert steer_of(page) == {f"#{concept}": 4.0 for concept in group["concepts"]}
    members.nth(1).press("Home")
    settled(page)
    assert slider.get_attribute("aria-valuetext") == "mixed"
    steer = {f"#{concept}": 4.0 for concept in group["concepts"]} | {f"#{group['concepts'][1]}": 0.0}
    assert steer_of(page) == steer
    assert hits(page) == asked(client, steer=steer)
    other = tab.context.new_page()
    other.goto(page.url)
    other.wait_for_selector(".hit .move")
    assert other.locator(".slides input[data-group]").nth(place).get_attribute("aria-valuetext") == "mixed"
    other.close()
    slider.press("Home")
    settled(page)
    assert {one.get_attribute("aria-valuetext") for one in members.all()} == {"off"}
    assert hits(page) == asked(client, steer={group["label"]: 0})


def test_no_two_sliders_have_one_name(tab: Tab) -> None:
    page = tab.open(f"/search?q={QUERY}&steer=3:2")
    page.wait_for_selector(".hit")
    for opener in page.locator(".opener").all():
        opener.click()
    names = page.locator(".slides input").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert len(names) > page.locator(".opener").count()
    assert len(names) == len(set(names))
    shown = page.locator(".slide-name").all_inner_texts()
    assert len(shown) == len(set(shown))


def test_form_comes_last_and_is_dimmed(tab: Tab, client: httpx.Client) -> None:
    body = {"query": "and to yeast", "k": 20}
    found = client.post("/v1/indexes/form/search", json=body).json()
    assert [group["form"] for group in found["groups"]][-2:] == [False, True]
    page = tab.open("/search?q=and to yeast&k=20&index=form")
    page.wait_for_selector(".hit")
    forms = page.locator(".slides .slide").evaluate_all("all => all.map(one => one.classList.contains('form'))")
    assert forms == [False] * (len(forms) - 1) + [True]
    soft = "one => getComputedStyle(one).color"
    shown = page.locator(".single, .opener")
    assert shown.last.evaluate(soft) == page.locator("#found").evaluate(soft) != shown.first.evaluate(soft)
    assert page.locator(".name.form").count() > 0
    for hit in page.locator(".hit").all():
        kinds = hit.locator(".name").evaluate_all("all => all.map(one => one.classList.contains('form'))")
        assert True not in kinds[:-2]  # only the others may come after it
    page.locator(".slides .slide.form input").press("Home")
    settled(page)
    wanted = client.post("/v1/indexes/form/search", json={**body, "steer": {"form": 0}}).json()
    assert hits(page) == [hit["id"] for hit in wanted["hits"]]
    assert page.locator(".name.form").count() == 0


def test_a_hit_opens_to_its_concepts_and_pairs_of_words(tab: Tab, client: httpx.Client) -> None:
    first = searched(client, words=True)["hits"][0]
    page = tab.open(f"/search?q={QUERY}")
    card = page.locator(".hit").first
    card.wait_for()
    assert card.locator(".line").count() == 0
    card.locator(".why-hit > summary").click()
    card.locator(".pairs li").first.wait_for()
    rows = card.locator(".pairs li").all_inner_texts()
    assert len(rows) == len(first["words"])
    for row, match in zip(rows, first["words"], strict=True):
        words = ", ".join(one["word"] for one in match["found"][:4])
        assert " ".join(row.split()) == f"{match['word']} found ↔ {words} {match['value']:.2f}"
    values = card.locator(".line > summary > .number").all_inner_texts()
    assert sum(map(float, values)) == pytest.approx(first["score"], abs=0.01 * len(values))
    line = first["groups"][0]
    box = card.locator(".line").first
    assert box.locator(".line-name").inner_text() == line["label"]
    box.locator("summary").click()
    parts = {part["concept"]: part for part in first["contributions"]}
    for place, concept in enumerate(line["concepts"]):
        text = box.locator(".members li").nth(place).inner_text()
        assert parts[concept]["label"] in text
        assert f"= {parts[concept]['value']:.2f}" in text
    second = card.locator("button.piece").nth(1)
    assert second.get_attribute("aria-expanded") == "false"
    second.click()  # opens its line, too
    assert second.get_attribute("aria-expanded") == "true"
    assert card.locator(".line[open]").count() == 2
    group_sliders(page).first.press("End")
    settled(page)
    assert page.locator(".hit .line[open]").count() == 2  # what is open stays open


def test_an_address_shows_the_same_to_others(tab: Tab, browser: Any, client: httpx.Client) -> None:
    page = tab.open(f"/search?q={QUERY}&k=5&filter=%7B%22n%22%3A%7B%22lt%22%3A30%7D%7D")
    page.wait_for_selector(".hit")
    page.locator(".slides input").first.focus()
    page.keyboard.press("Home")  # off
    for _ in range(3):
        page.locator(".slides input").nth(1).press("ArrowRight")
    settled(page)
    wanted, url = hits(page), page.url
    assert wanted == asked(client, k=5, filter={"n": {"lt": 30}}, steer=steer_of(page))
    other = Tab(browser, tab.base)
    other.page.goto(url)
    other.page.wait_for_selector(".hit .move")
    assert hits(other.page) == wanted
    assert other.page.locator(".slides input").first.get_attribute("aria-valuetext") == "off"
    assert other.page.locator(".slides input").nth(1).get_attribute("aria-valuetext") == "1.7×"
    other.close()
    page.locator("nav a", has_text="Lexicon").click()
    page.wait_for_selector(".table")
    page.go_back()
    page.wait_for_selector(".hit")
    assert hits(page) == wanted


def kept_of(url: str) -> dict[str, list[str]]:
    found = parse_qs(urlparse(url).query)
    return {name: found[name] for name in ("q", "steer", "k", "filter") if name in found}


def test_steering_hits_and_filters_hold_everywhere(tab: Tab, client: httpx.Client) -> None:
    page = tab.open(f'/search?q={QUERY}&k=5&filter={{"n": {{"lt": 30}}}}')
    page.wait_for_selector(".hit")
    group_sliders(page).first.press("End")
    settled(page)
    kept = kept_of(page.url)
    assert set(kept) == {"q", "steer", "k", "filter"}
    how: dict[str, Any] = {"steer": steer_of(page), "filter": {"n": {"lt": 30}}, "query": QUERY}
    links = page.locator("nav a, .title, .slides a")
    assert all(kept_of(f"{tab.base}{href}") == kept for href in links.evaluate_all(HREFS))
    ranked = hits(page)
    page.locator(".hit .title").nth(2).click()
    page.wait_for_selector(".verdict")
    assert "number 3" in page.locator(".verdict").inner_text()
    assert "4.0×" in page.locator(".kept").inner_text()
    assert kept_of(page.url) == kept
    page.locator("nav a", has_text="Compare").click()
    page.wait_for_selector(".ranking li")
    reply = client.post("/v1/indexes/docs/compare", json={**how, "k": 5}).json()
    for place, system in enumerate(reply["systems"]):
        ids = page.locator(".system").nth(place).locator("li").evaluate_all("all => all.map(one => one.dataset.id)")
        assert ids == [hit["id"] for hit in system["hits"]]
    page.go_back()
    page.wait_for_selector(".verdict")
    page.go_back()
    page.wait_for_selector(".hit")
    assert hits(page) == ranked
    page.go_forward()
    page.wait_for_selector(".verdict")
    assert kept_of(page.url) == kept
    page.get_by_role("link", name="Drop all").click()
    page.wait_for_selector(".verdict")
    assert kept_of(page.url) == {"q": [QUERY]}


HREFS = "all => all.map(one => one.getAttribute('href'))"


def test_turning_up_adds_to_what_is_set(tab: Tab, client: httpx.Client) -> None:
    own = {one["id"] for one in searched(client)["concepts"]}
    first, second = [concept for concept in range(96) if concept not in own][:2]
    page = tab.open(f"/concept?id={first}")
    page.get_by_role("link", name="Search with it").click()
    page.locator(".kept", has_text=label_of(client, first)).wait_for()
    page.goto(f"{tab.base}/concept?id={second}&steer={first}:2")
    page.get_by_role("link", name="Search with it").click()
    page.get_by_role("searchbox").fill(QUERY)
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    assert steer_of(page) == {f"#{first}": 2, f"#{second}": 2}
    assert hits(page) == asked(client, steer=steer_of(page))
    page.get_by_role("searchbox").fill("king light")
    page.keyboard.press("Enter")
    eventually(page, "document.title.startsWith('king light')")
    settled(page)
    assert hits(page) == asked(client, query="king light", steer={f"#{first}": 2, f"#{second}": 2})
    page.goto(f"{tab.base}/concept?id={first}&q={QUERY}&steer={first}:2")
    page.get_by_role("link", name="Turn it up in your search").click()
    page.wait_for_selector(".hit")
    assert steer_of(page) == {f"#{first}": 4}


def test_any_concept_can_be_added_by_name(tab: Tab, client: httpx.Client) -> None:
    page = tab.open(f"/search?q={QUERY}")
    page.wait_for_selector(".hit")
    own = {one["id"] for one in searched(client)["concepts"]}
    other = next(concept for concept in range(96) if concept not in own)
    label = label_of(client, other)
    page.get_by_role("combobox", name="Add a concept by name").fill(label)
    page.locator(".choices li", has_text=f"{label}#{other},").wait_for()
    page.keyboard.press("Enter")
    settled(page)
    assert steer_of(page) == {f"#{other}": 2.0}
    assert hits(page) == asked(client, steer={f"#{other}": 2})
    page.get_by_role("button", name=f"Remove {label}").click()
    settled(page)
    assert hits(page) == asked(client)


def test_an_added_concept_has_its_colour_and_segment_at_once(tab: Tab, client: httpx.Client) -> None:
    query = " ".join(words.split()[0] for words in small.TOPICS.values()) + " yeast dough oven crust light queen"
    own = {one["id"] for one in searched(client, query=query)["concepts"]}
    other = next(concept for concept in range(96) if concept not in own)
    hit = searched(client, query=query, steer={f"#{other}": 2})["hits"]
    having = [one["id"] for one in hit if any(other in line["concepts"] for line in one["groups"])]
    page = tab.open(f"/search?q={query}")
    page.wait_for_selector(".hit")
    page.get_by_role("combobox", name="Add a concept by name").fill(label_of(client, other))
    page.locator(".choices li", has_text=f"#{other},").wait_for()
    page.keyboard.press("Enter")
    settled(page)
    colour = "one => getComputedStyle(one).getPropertyValue('--hue')"
    slide = page.locator(f'.slide[data-concept="{other}"]')
    grey = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--strong')")
    hue = slide.evaluate(colour)
    assert hue != grey
    assert slide.locator(".dot").count() == 1
    assert having
    for id in having:
        piece = page.locator(".hit").nth(hits(page).index(id)).locator(f'.piece[data-group="{other}"]')
        assert piece.count() == 1
        assert piece.evaluate(colour) == hue
    hues = page.locator(".slide:has(.dot):not(.kx)").evaluate_all(f"all => all.map({colour})")
    assert len(hues) == len(set(hues))


def test_enter_picks_the_concept_of_what_is_written(tab: Tab, client: httpx.Client) -> None:
    own = {one["id"] for one in searched(client)["concepts"]}
    other = next(concept for concept in range(50, 96) if concept not in own)
    label = label_of(client, other)
    page = tab.open(f"/search?q={QUERY}")
    page.wait_for_selector(".hit")
    field = page.get_by_role("combobox", name="Add a concept by name")
    field.fill(label.split()[0])  # its concepts are shown
    page.locator(".choices li").first.wait_for()
    held: list[Any] = []
    page.route("**/concepts?find=*", lambda route: held.append(route))  # the answer comes after Enter
    field.fill(label)
    page.keyboard.press("Enter")
    page.wait_for_timeout(100)
    assert steer_of(page) == {}
    held[-1].continue_()
    eventually(page, "location.search.includes('steer')")
    assert steer_of(page) == {f"#{other}": 2.0}


def test_what_is_in_focus_marks_its_words(tab: Tab, client: httpx.Client) -> None:
    page = tab.open("/search?q=yeast dough oven")
    page.wait_for_selector(".passage mark")
    reply = searched(client, query="yeast dough oven")
    ids = [hit["id"] for hit in reply["hits"]]
    words = client.post("/v1/indexes/docs/words", json={"query": "yeast dough oven", "documents": ids}).json()
    own = next(one for one in words["documents"] if one["id"] == "wide")
    card = page.locator(".hit", has=page.locator(".title", has_text="Wide"))
    piece = card.locator("button.piece").first
    key = piece.get_attribute("data-group")
    piece.hover()
    eventually(page, f"[...document.querySelectorAll('.passage mark')].every(one => one.dataset.group === '{key}')")
    group = next(one for one in reply["groups"] if one["concepts"][0] == int(key))
    raised = {
        token["token"] for one in own["concepts"] if one["concept"] in group["concepts"] for token in one["tokens"]
    }
    assert set(card.locator("mark").all_inner_texts()) <= raised
    assert card.locator("mark").count() > 0
    piece.click()
    box = card.locator(f'.line[data-group="{key}"]')
    assert "×" in box.inner_text()
    page.locator(".opener", has_text=group["label"].split(" · ")[0]).first.click()
    concept = next(one for one in own["concepts"] if one["concept"] in group["concepts"])
    page.locator(f'.slide[data-concept="{concept["concept"]}"]').hover()
    wanted = {token["token"] for token in concept["tokens"]}  # also behind signs that JavaScript counts twice
    eventually(page, f"document.querySelector('.hit[data-key=wide]').querySelectorAll('mark').length >= {len(wanted)}")
    assert set(card.locator("mark").all_inner_texts()) == wanted


LONG_QUERY = " ".join(f"{one} {other}" for one in QUERY.split() for other in small.TOPICS["bread"].split())


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_moves_on_hover(browser: Any, client: httpx.Client, width: int) -> None:
    tab = Tab(browser, f"http://127.0.0.1:{client.base_url.port}", viewport={"width": width, "height": 740})
    page = tab.open(f"/search?q={LONG_QUERY}")
    page.locator(".echo mark").first.wait_for()
    settled(page)
    if width < 900:
        page.locator(".panel summary").click()
    places = (
        "[...document.querySelectorAll('.echo, .hit, .name, .slide')]"
        ".map(one => one.getBoundingClientRect()).map(box => [box.top + scrollY, box.height])"
    )
    before = page.evaluate(places)
    for kind in (".hit:first-child .piece:not(.rest)", ".hit:nth-child(2) .name:not(.rest)", ".slide"):
        for one in page.locator(kind).all():
            one.dispatch_event("mouseenter")
            eventually(page, "document.querySelector('.dim') !== null")
            assert page.evaluate(places) == before
            one.dispatch_event("mouseleave")
            eventually(page, "document.querySelector('.dim') === null")
    tab.close()
    assert tab.errors == []


def test_a_tap_explains_and_does_not_navigate(browser: Any, client: httpx.Client) -> None:
    tab = Tab(
        browser, f"http://127.0.0.1:{client.base_url.port}", viewport={"width": 360, "height": 740}, has_touch=True
    )
    page = tab.open(f"/search?q={QUERY}")
    page.locator(".hit mark").first.wait_for()
    settled(page)
    url = page.url
    page.locator(".hit .piece").first.tap()
    page.locator(".hit:first-child .line[open]").wait_for()
    page.locator(".hit:nth-child(2) .name").first.tap()
    page.locator(".hit:nth-child(2) .line[open]").wait_for()
    page.locator(".panel summary").tap()
    for opener in page.locator(".opener").all():
        opener.tap()
    names = page.locator(".members .slide-name > :first-child:visible").all()
    assert names
    for name in names:
        name.tap()
        eventually(page, "document.querySelector('.dim') !== null")
        assert page.url == url
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"
    assert page.locator(".slide-name, .single, .opener, .name, .line-name").evaluate_all(cut) == []
    tab.close()
    assert tab.errors == []


def test_a_long_text_is_cut_around_the_words_that_count(tab: Tab) -> None:
    page = tab.open("/search?q=walrus tusk")
    card = page.locator('.hit[data-key="long"]')
    card.locator("mark").first.wait_for()
    assert "walrus tusk" in card.locator(".passage").inner_text()
    assert card.locator(".passage").inner_text().startswith("…")


def test_everything_can_be_done_with_the_keyboard(tab: Tab, client: httpx.Client) -> None:
    page = tab.open("/lexicon")
    page.wait_for_selector(".table")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "find"
    page.goto(f"{tab.base}/")
    page.wait_for_selector(".chips a")
    page.keyboard.type(QUERY)  # the box is in focus from the start
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.className"))
        if "piece" in seen[-1]:
            break
    assert "piece" in seen[-1]
    first = page.evaluate("document.activeElement.dataset.group")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.dataset.group")
    assert first != second
    page.keyboard.press("Enter")
    page.locator(f'.line[open][data-group="{second}"]').wait_for()
    for _ in range(20):
        page.keyboard.press("Tab")
        concept = page.evaluate(
            "document.activeElement.closest('.members') && document.activeElement.getAttribute('href')"
        )
        if concept:
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("#rename")
    assert f"#{parse_qs(urlparse(concept).query)['id'][0]}" == page.locator("main .tag").first.inner_text()
    page.go_back()
    page.wait_for_selector(".hit")
    slider = page.locator(".slides input").first
    slider.focus()
    page.keyboard.press("End")
    settled(page)
    assert hits(page) == asked(client, steer=steer_of(page))
    outline = slider.evaluate("one => getComputedStyle(one).outlineStyle")
    assert outline != "none"
    page.locator("body").press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")


def test_a_server_that_goes_away_leaves_the_hits(tab: Tab, client: httpx.Client) -> None:
    page = tab.open(f"/search?q={QUERY}")
    page.wait_for_selector(".hit mark")
    settled(page)
    shown = hits(page)
    page.route("**/search", lambda route: route.abort())
    group_sliders(page).first.press("End")
    page.get_by_role("heading", name="The server does not answer").wait_for()
    assert hits(page) == shown
    page.unroute("**/search")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("alert").wait_for(state="detached")
    settled(page)
    assert hits(page) == asked(client, steer=steer_of(page))
    before = hits(page)
    page.route("**/search", lambda route: route.abort())
    page.get_by_role("searchbox").fill("king queen")  # another query: the hits of the last one stay
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="The server does not answer").wait_for()
    assert hits(page) == before
    page.unroute("**/search")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("alert").wait_for(state="detached")
    settled(page)
    assert hits(page) == asked(client, query="king queen", steer=steer_of(page))
    tab.errors = [error for error in tab.errors if "net::ERR_FAILED" not in error]


def test_a_query_that_is_too_long_is_not_sent(tab: Tab) -> None:
    page = tab.open("/")
    page.wait_for_selector(".chips a")
    tab.requests.clear()
    for path in ("/", "/compare"):
        page.goto(tab.base + path)
        page.get_by_role("searchbox").fill("yeast " * 400)
        page.keyboard.press("Enter")
        assert "2,399 characters" in page.get_by_role("alert").inner_text()
        assert "at most 2,000" in page.get_by_role("alert").inner_text()
    page.goto(f"{tab.base}/search?q={'yeast ' * 400}")
    page.get_by_role("alert").wait_for()
    assert not any(urlparse(url).path.endswith(("docs/search", "docs/compare", "docs/words")) for url in tab.requests)


def test_the_page_says_which_part_of_a_query_was_not_read(tab: Tab, client: httpx.Client) -> None:
    query = " ".join(["yeast"] * 256 + ["unread", "words"])
    page = tab.open(f"/search?q={query}")
    page.wait_for_selector(".hit")
    assert page.locator(".echo s").inner_text() == "unread words"
    page.goto(f"{tab.base}/search?q={QUERY}")
    page.wait_for_selector(".hit")
    assert page.locator(".echo s").count() == 0


def test_one_key_goes_to_the_sliders(tab: Tab, browser: Any) -> None:
    page = tab.open(f"/search?q={QUERY}")
    page.wait_for_selector(".slides input")
    page.keyboard.press("s")
    first = "document.activeElement === document.querySelector('.slides input')"
    assert page.evaluate(first)
    phone = Tab(browser, tab.base, viewport={"width": 360, "height": 740})
    page = phone.open(f"/search?q={QUERY}")
    page.wait_for_selector(".hit")
    settled(page)
    page.keyboard.press("s")
    assert page.evaluate(first)
    assert page.locator(".slides input").first.is_visible()
    phone.close()


def test_facets_filter_by_values_and_ranges(tab: Tab, client: httpx.Client) -> None:
    page = tab.open(f"/search?q={QUERY}&index=facts")
    page.wait_for_selector(".facet")
    settled(page)
    facets = page.locator(".facet > summary")
    assert [name.strip() for name in facets.all_inner_texts()] == ["lang", "n"]

    def found(**condition: Any) -> list[str]:
        reply = client.post("/v1/indexes/facts/search", json={"query": QUERY, "filter": condition}).json()
        return [hit["id"] for hit in reply["hits"]]

    facets.first.press("Enter")
    counts = page.locator(".facet label:has(input[type=checkbox])").all_inner_texts()
    assert [" ".join(text.split()) for text in counts] == ["de 14", "en 13", "fr 13"]
    page.get_by_role("checkbox", name="en").check()
    eventually(page, "location.search.includes('filter')")
    settled(page)
    assert hits(page) == found(lang="en")
    page.get_by_role("checkbox", name="fr").check()
    settled(page)
    assert hits(page) == found(lang=["en", "fr"])
    assert facets.first.inner_text() == "lang: en, fr"
    page.keyboard.press("Escape")
    facets.nth(1).press("Enter")
    assert page.locator(".facet-bins span").count() > 5
    page.get_by_role("spinbutton", name="From").fill("10")
    page.keyboard.press("Tab")
    eventually(page, "location.search.includes('gte')")
    settled(page)
    assert hits(page) == found(lang=["en", "fr"], n={"gte": 10})
    shown = hits(page)
    page.reload()
    page.wait_for_selector(".facet")
    settled(page)
    assert hits(page) == shown
    assert facets.all_inner_texts() == ["lang: en, fr", "n: 10 – "]
    page.goto(f'{tab.base}/search?q={QUERY}&index=facts&filter={{"not": {{"lang": "en"}}}}')
    page.get_by_role("button", name="Drop the filter not").click()
    eventually(page, "!location.search.includes('filter')")


# --- the other screens -------------------------------------------------------------------------------------------


def test_tokens_are_aligned_where_they_are_matched(tab: Tab, client: httpx.Client) -> None:
    page = tab.open(f"/search?q={QUERY}&index=tokens")
    first = client.post("/v1/indexes/tokens/search", json={"query": QUERY}).json()["hits"][0]
    box = page.locator(".align-box").first
    box.wait_for()
    tokens = box.locator("button")
    assert [one.split("\n")[0] for one in tokens.all_inner_texts()] == [
        one["query"]["token"] for one in first["alignment"]
    ]
    joined = sum(one["document"] is not None for one in first["alignment"])
    eventually(page, f"document.querySelectorAll('.hit:first-child .align-lines path').length === {joined}")
    tokens.first.focus()
    assert f"adds {first['alignment'][0]['value']:.2f}" in page.locator(".align-about").first.inner_text()
    page.locator(".hit").nth(1).get_by_text("Token by token").click()
    eventually(page, "document.querySelectorAll('.align-box').length === 2")
    page.goto(f"{tab.base}/document?id={first['id']}&q={QUERY}&index=tokens")
    page.locator(".why .align-box").wait_for()


def test_compare_joins_the_ranks_of_three_systems(tab: Tab, client: httpx.Client) -> None:
    page = tab.open("/compare?q=yeast dough oven")
    page.wait_for_selector(".ranking li")
    reply = client.post("/v1/indexes/docs/compare", json={"query": "yeast dough oven"}).json()
    columns = page.locator(".system")
    assert columns.count() == 3
    for place, system in enumerate(reply["systems"]):
        ids = columns.nth(place).locator("li").evaluate_all("all => all.map(one => one.dataset.id)")
        assert ids == [hit["id"] for hit in system["hits"]]
    pairs = zip(reply["systems"], reply["systems"][1:], strict=False)
    shared = [{hit["id"] for hit in one["hits"]} & {hit["id"] for hit in other["hits"]} for one, other in pairs]
    eventually(page, f"document.querySelectorAll('.lines path').length === {sum(map(len, shared))}")
    texts = {hit["id"]: hit["text"] for system in reply["systems"] for hit in system["hits"]}
    for item in page.locator(".ranking > li").all():
        assert item.locator(".passage").inner_text() in " ".join(texts[item.get_attribute("data-id")].split())
    item = page.locator(".system").last.locator(".ranking > li").first
    item.get_by_text("Why").click()
    item.locator(".line").first.wait_for()
    assert "By concepts it is number" in item.inner_text()
    page.goto(f"{tab.base}/compare?q=yeast&index=plain")
    page.wait_for_selector(".ranking li")
    assert "--with dense" in page.locator(".notice").inner_text()
    assert page.locator(".system").count() == 2


def test_a_concept_can_be_renamed_and_keeps_its_name(tab: Tab, client: httpx.Client) -> None:
    concept = client.get("/v1/indexes/docs/concepts?limit=1").json()["concepts"][0]["id"]
    page = tab.open(f"/concept?id={concept}")
    page.locator(".quantile").first.wait_for()
    shown = client.get(f"/v1/indexes/docs/concepts/{concept}").json()
    assert page.locator(".plot .column").count() == len(shown["histogram"]["counts"])
    assert page.locator(".quantile mark").count() > 0
    evidence = page.locator(".evidence li").all_inner_texts()
    assert len(evidence) == len(shown["raised_here"])
    for row, word in zip(evidence, shown["raised_here"], strict=True):
        assert row.startswith(word["word"])
        assert f"{word['count']} time" in row
    assert shown["plain"] == f"concept {concept}"
    assert f"in the lexicon: concept {concept}" in page.locator("main").inner_text()
    assert "the words that raise it in these documents" in page.locator(".facts").inner_text()
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Your name for this concept").fill("Kitchen things")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Kitchen things").wait_for()
    assert client.get(f"/v1/indexes/docs/concepts/{concept}").json()["label"] == "Kitchen things"
    page.reload()
    page.get_by_role("heading", name="Kitchen things").wait_for()
    page.goto(f"{tab.base}/lexicon?find=kitchen")
    page.get_by_role("link", name="Kitchen things").click()
    page.get_by_role("button", name="Rename").click()
    taken = label_of(client, 3 if concept != 3 else 4)
    page.get_by_role("textbox", name="Your name for this concept").fill(taken)
    page.get_by_role("button", name="Save").click()
    assert "already called" in page.get_by_role("alert").inner_text()
    page.get_by_role("button", name="Back to its own name").click()
    page.get_by_role("heading", name=shown["label"], exact=True).wait_for()
    tab.errors = [error for error in tab.errors if "422" not in error]  # the browser's own note of the refusal


def test_a_document_is_added_found_and_explained(tab: Tab, client: httpx.Client) -> None:
    page = tab.open("/")
    page.wait_for_selector(".chips a")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("textbox", name="Id").fill("penguin-1")
    page.get_by_role("textbox", name="Title").fill("Penguins")
    page.get_by_role("textbox", name="Text").fill("penguin penguin iceberg dough")
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    page.get_by_role("heading", name="Penguins").wait_for()
    page.wait_for_selector(".word")
    page.goto(f"{tab.base}/search?q=penguin iceberg")
    page.wait_for_selector(".hit")
    assert hits(page)[0] == "penguin-1"
    page.locator(".hit .title").nth(1).click()
    page.wait_for_selector(".verdict")
    assert "number 2" in page.locator(".verdict").inner_text()
    assert page.locator(".differences tbody tr").count() > 1
    page.wait_for_selector(".word")
    page.locator(".word").first.focus()
    assert "raised" in page.locator(".about").inner_text()
    page.keyboard.press("ArrowRight")
    second = page.locator(".word").nth(1).inner_text()
    assert page.locator(".about b").inner_text().lower() == second.lower()
    page.locator(".weight-row").first.click()
    assert page.locator(".word.on").count() > 0
    assert client.delete("/v1/indexes/docs/documents", params={"id": "penguin-1"}).status_code == 200


def test_what_adds_to_a_higher_score_comes_first(tab: Tab, client: httpx.Client) -> None:
    def signs(values: list[float]) -> list[bool]:
        return [value > 0 for value in values]

    for hit in searched(client)["hits"][1:]:
        found = client.post("/v1/indexes/docs/explain", json={"query": QUERY, "document": hit["id"]}).json()
        values = [one["value"] for one in found["above"]["differences"][:7]]
        if signs(values) != sorted(signs(values), reverse=True):
            break
    else:
        raise AssertionError("no hit lacks and has concepts of the one above in turn")
    page = tab.open(f"/document?id={hit['id']}&q={QUERY}")
    page.wait_for_selector(".differences")
    shown = page.locator(".differences").first.locator("tbody tr:has(.chart svg) .number").all_inner_texts()
    wanted = [value for value in values if value > 0] + [value for value in values if value <= 0]
    assert [float(value.replace("−", "-")) for value in shown] == [round(value, 2) for value in wanted]


def test_a_mouse_that_rests_over_a_word_tells_nothing_of_it(tab: Tab) -> None:
    page = tab.open(f"/search?q={QUERY}")
    page.locator(".hit .title").first.click()
    page.wait_for_selector(".word")
    page.locator(".word").nth(2).hover()
    third = page.locator(".about b").inner_text()
    page.locator(".word").first.focus()
    first = page.locator(".about b").inner_text()
    assert first != third
    page.locator(".weight-row").first.press("Enter")  # the words are drawn anew, one of them under the mouse
    eventually(page, "document.querySelector('.word.on') !== null")
    eventually(page, "document.querySelector('.word:hover') !== null")
    assert page.locator(".about b").inner_text() == first


def test_the_lexicon_can_be_searched_sorted_and_paged(tab: Tab, client: httpx.Client) -> None:
    page = tab.open("/lexicon")
    page.wait_for_selector(".table tbody tr")
    assert page.locator(".table tbody tr").count() == 50
    assert page.locator(".plot .curve").count() == 1
    page.get_by_role("button", name="Number").click()
    eventually(page, "document.querySelector('.table tbody td').textContent === '#0'")
    page.get_by_role("button", name="Next").click()
    eventually(page, "document.querySelector('.table tbody td').textContent === '#50'")
    assert "page=2" in page.url
    page.get_by_role("searchbox").fill(label_of(client, 42))
    eventually(page, "document.querySelector('.table tbody td').textContent === '#42'")
    page.get_by_role("searchbox").fill("qqqq")
    page.get_by_role("heading", name="No concept has such a name").wait_for()


def test_another_index_can_be_chosen(tab: Tab) -> None:
    page = tab.open(f"/search?q={QUERY}")
    page.wait_for_selector(".hit")
    page.get_by_label("Index").select_option("plain")
    eventually(page, "location.search.includes('index=plain')")
    page.wait_for_selector(".hit")
    assert "12 documents" in page.locator("#found").inner_text()


# --- text stays text ---------------------------------------------------------------------------------------------


def test_what_a_document_holds_is_never_html(tab: Tab) -> None:
    page = tab.open("/search?q=zebra")
    page.wait_for_selector(".hit mark")
    assert EVIL in page.locator(".hit").first.inner_text().replace("\u00a0", " ")
    for path in ("/document?id=evil%22%3E%3Cb%3E&q=zebra", f"/search?q={EVIL}", f"/lexicon?find={EVIL}"):
        page.goto(tab.base + path)
        settled(page)
    page.goto(f"{tab.base}/document?id=evil%22%3E%3Cb%3E&q=zebra")
    page.wait_for_selector(".word")
    assert EVIL in page.locator("h1").inner_text()
    assert page.evaluate("window.hurt === undefined")
    assert page.locator("main img, main script").count() == 0


# --- states ------------------------------------------------------------------------------------------------------


def test_states_are_designed(tab: Tab, browser: Any) -> None:
    page = tab.open("/search?q=yeast&filter=nonsense")
    assert "filter" in page.get_by_role("alert").inner_text()
    page.goto(f'{tab.base}/search?q=yeast&filter={{"n": 123456}}')
    page.get_by_role("heading", name="Nothing shares a concept").wait_for()
    page.goto(f"{tab.base}/document?id=none")
    page.get_by_role("alert").wait_for()
    assert "no document" in page.get_by_role("alert").inner_text()
    page.goto(f"{tab.base}/document")
    page.get_by_role("heading", name="Which document?").wait_for()
    page.goto(f"{tab.base}/compare")
    page.get_by_role("heading", name="Ask something").wait_for()
    tab.errors = [error for error in tab.errors if "404" not in error]
    page.route("**/search", lambda route: None)  # an answer that does not come
    page.goto(f"{tab.base}/?q=yeast")
    page.wait_for_selector(".bone")
    page.get_by_text("Still working").first.wait_for()
    page.unroute("**/search")
    page.route("**/search", lambda route: route.abort())
    page.goto(f"{tab.base}/search?q=dough")
    page.get_by_role("heading", name="The server does not answer").wait_for()
    page.unroute("**/search")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".hit")
    tab.errors = [error for error in tab.errors if "net::ERR_FAILED" not in error]


def test_a_page_that_comes_too_early_opens_by_itself(browser: Any, client: httpx.Client) -> None:
    tab = Tab(browser, f"http://127.0.0.1:{client.base_url.port}")
    indexes = client.app.state.registry  # type: ignore[attr-defined]
    indexes.ready = False
    try:
        page = tab.open(f"/search?q={QUERY}")
        page.get_by_role("heading", name="Starting").wait_for()
    finally:
        indexes.ready = True
    page.wait_for_selector(".hit")
    assert tab.errors == []
    tab.close()


def test_a_server_with_a_key_asks_for_it(browser: Any, tmp_path: Path) -> None:
    small.build(tmp_path / "own.lexent", small.documents(8)).close()
    settings = Settings(keys=Keys(write="w" * 20, read="r" * 20))
    with serving([tmp_path / "own.lexent"], settings) as client:
        tab = Tab(browser, f"http://127.0.0.1:{client.base_url.port}")
        page = tab.open("/search?q=yeast")
        page.get_by_label("Key").fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_label("Key").fill("r" * 20)
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")
        assert tab.outside == []
        tab.close()


def test_the_files_of_the_page_are_small() -> None:
    folder = Path(str(resources.files("lexent.server"))) / "page"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 300_000


# --- for everyone ------------------------------------------------------------------------------------------------

SCREENS = {
    "landing": ("/", ".chips a"),
    "search": (f"/search?q={QUERY}&steer=3:2", ".hit mark"),
    "facets": (f'/search?q={QUERY}&index=facts&filter={{"n": {{"gte": 3}}}}', ".facet.on"),
    "tokens": (f"/search?q={QUERY}&index=tokens", ".align-box button"),
    "compare": ("/compare?q=yeast dough", ".ranking li"),
    "concept": ("/concept?id=3", ".quantile"),
    "document": (f"/document?id=d7&q={QUERY}", ".word"),
    "lexicon": ("/lexicon", ".table tbody tr"),
}


def open_all(page: Any) -> None:
    """A hit with one of its lines, and a group of the sliders."""
    card = page.locator(".hit").first
    card.locator(".why-hit > summary").click()
    card.locator(".line summary").first.click()
    card.locator(".pairs li").first.wait_for()
    page.locator(".opener").first.click()
    page.mouse.move(0, 0)
    eventually(page, "document.querySelectorAll('.dim').length === 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SCREENS)
def test_no_screen_has_an_accessibility_violation(browser: Any, client: httpx.Client, name: str, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe: pip install axe-playwright-python"
    )
    path, selector = SCREENS[name]
    tab = Tab(browser, f"http://127.0.0.1:{client.base_url.port}", color_scheme=scheme)
    page = tab.open(path)
    page.wait_for_selector(selector)
    settled(page)
    if name == "search":
        open_all(page)
        page.get_by_role("combobox", name="Add a concept by name").fill("concept 1")
        page.locator(".choices li").first.wait_for()
    if name == "facets":
        page.locator(".facet > summary").first.click()
    found = axe.Axe().run(page)
    wrong = [
        f"{one['id']}: {one['help']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in found.response["violations"]
        for node in one["nodes"][:3]
    ]
    assert wrong == []
    assert tab.errors == []
    assert tab.outside == []
    tab.close()


@pytest.mark.parametrize("name", SCREENS)
def test_every_screen_fits_a_phone(browser: Any, client: httpx.Client, name: str) -> None:
    path, selector = SCREENS[name]
    base = f"http://127.0.0.1:{client.base_url.port}"
    tab = Tab(browser, base, viewport={"width": 360, "height": 740}, has_touch=True)
    page = tab.open(path)
    page.wait_for_selector(selector)
    settled(page)
    if name == "search":
        page.locator(".panel summary").click()
        open_all(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert tab.errors == []
    tab.close()


def test_cards_glide_where_motion_is_welcome_and_not_where_it_is_not(browser: Any, client: httpx.Client) -> None:
    counts = {}
    for motion in ("no-preference", "reduce"):
        tab = Tab(browser, f"http://127.0.0.1:{client.base_url.port}", reduced_motion=motion)
        page = tab.open(f"/search?q={QUERY}")
        page.wait_for_selector(".hit")
        settled(page)
        page.evaluate(
            "() => { window.glides = 0; const old = Element.prototype.animate;"
            "Element.prototype.animate = function (...all) { window.glides += 1; return old.apply(this, all); }; }"
        )
        for place in range(4):
            group_sliders(page).nth(place).press("End")
            settled(page)
        counts[motion] = page.evaluate("window.glides")
        tab.close()
    assert counts["no-preference"] > 0
    assert counts["reduce"] == 0
