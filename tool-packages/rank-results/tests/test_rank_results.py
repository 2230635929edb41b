"""Relevance, recency, preference, weights, order and duplicates."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield import ErrorType, Failure, ToolResponse
from jackfield.registry.arguments import Arguments
from jackfield_tool_rank_results.handler import execute

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = resources.files("jackfield_tool_rank_results")
SCHEMA: dict[str, Any] = json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8"))
PARAMETERS = Arguments(SCHEMA["parameters"])
RETURNS = Arguments(SCHEMA["returns"])
GUIDE = PACKAGE.joinpath("guide.md").read_text("utf-8")

NOW = "2026-06-01T00:00:00Z"
ONLY = {"relevance": 0, "score": 0, "recency": 0, "preference": 0}


def call(**args: Any) -> ToolResponse:
    """Make a call as the registry does: validated, then completed with defaults."""
    args = json.loads(json.dumps({"now": NOW, **args}))
    assert PARAMETERS.violations(args) == []
    PARAMETERS.fill_defaults(args)
    return execute(args, None)  # type: ignore[arg-type]  # it uses nothing of its context


def run(items: list[dict[str, Any]], **args: Any) -> Any:
    response = call(items=items, **args)
    assert response.ok, response.failure
    assert RETURNS.violations(response.data) == []
    return response.data


def refuse(items: list[dict[str, Any]], **args: Any) -> Failure:
    failure = call(items=items, **args).failure
    assert failure is not None
    assert failure.type is ErrorType.PERMANENT
    assert not failure.retryable
    return failure


def order(items: list[dict[str, Any]], **args: Any) -> list[str]:
    return [result["id"] for result in run(items, **args)["results"]]


def item(id_: str, title: str = "", **fields: Any) -> dict[str, Any]:
    return {"id": id_, "title": title or f"Title of {id_}", **fields}


def relevances(query: str, items: list[dict[str, Any]]) -> dict[str, float]:
    results = run(items, query=query, top_k=10, deduplicate=False)["results"]
    return {result["id"]: result["reasons"]["relevance"] for result in results}


# Relevance


def test_the_title_outweighs_tags_and_tags_outweigh_the_snippet() -> None:
    places = [
        item("snippet", "Something", snippet="All about onboarding."),
        item("title", "Onboarding"),
        item("tag", "Something else", tags=["Onboarding"]),
        item("none", "Lunch menu"),
    ]
    assert relevances("onboarding", places) == {"title": 1.0, "tag": 0.8, "snippet": 0.6, "none": 0.0}
    assert order(places, query="onboarding") == ["title", "tag", "snippet", "none"]


def test_more_matching_words_rank_higher() -> None:
    plans = [item("half", "Launch party"), item("whole", "Launch plan for Atlas"), item("none", "Office map")]
    assert order(plans, query="Atlas launch plan") == ["whole", "half", "none"]


def test_words_common_to_all_items_have_little_weight() -> None:
    guides = [
        item("a", "The guide for the printer"),
        item("b", "The guide for the scanner"),
        item("c", "The guide for the visitors"),
    ]
    found = relevances("the guide for the scanner", guides)
    assert found["b"] == 1.0
    assert found["a"] == found["c"] == 0.5


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("organisation chart", "Organization Chart"),
        ("designs", "Design"),
        ("CAFÉ résumé", "cafe resume"),
        ("onbaording", "Onboarding"),
        ("company's values", "Companys values"),
        ("Straße", "STRASSE"),
        ("ﬁle upload", "File upload"),
        ("会議の議事録", "先週の会議の議事録"),
        ("ประชุม", "บันทึกการประชุม"),
        ("встреча", "Встречи"),
        ("योजना", "नई योजना"),
        ("회의록", "주간 회의록"),
    ],
)
def test_words_match_in_other_spellings_and_scripts(query: str, title: str) -> None:
    found = relevances(query, [item("hit", title), item("miss", "Zebra")])
    assert found["hit"] >= 0.8
    assert found["miss"] == 0


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("form", "for"),
        ("budget", "gadget"),
        ("2025", "2026"),
        ("20251", "20252"),
        ("start", "art"),
        ("cat", "cut"),
        ("की", "का"),
    ],
)
def test_different_words_do_not_match(query: str, title: str) -> None:
    assert relevances(query, [item("miss", title), item("other", "Zebra")])["miss"] == 0


@pytest.mark.parametrize(("query", "title"), [("Café", "CAFE"), ("don't", "dont"), ("本", "本"), ("Ⅳ", "iv")])
def test_insignificant_spelling_differences_do_not_matter(query: str, title: str) -> None:
    assert relevances(query, [item("hit", title), item("miss", "Zebra")])["hit"] == 1.0


def test_a_query_without_words_is_ignored() -> None:
    assert "relevance" not in run([item("a", score=0.5)], query="?!")["weights"]


# Recency


def test_recency_decays_with_the_half_life() -> None:
    items = [
        item("new", last_updated="2026-06-01"),
        item("old", last_updated="2026-05-02"),
        item("older", last_updated="2026-04-02T00:00:00+00:00"),
        item("future", last_updated="2027-01-01"),
    ]
    results = run(items, half_life_days=30)["results"]
    assert {result["id"]: result["score"] for result in results} == {
        "future": 1.0,
        "new": 1.0,
        "old": 0.5,
        "older": 0.25,
    }


def test_very_old_items_are_sorted_by_date() -> None:
    items = [item(str(year), last_updated=f"{year}-01-01") for year in (1990, 2020, 1950, 1995, 1991)]
    newest_first = ["2020", "1995", "1991", "1990", "1950"]
    assert order(items, weights={**ONLY, "recency": 1}) == newest_first
    assert order(items, weights={**ONLY, "recency": 1}, half_life_days=1) == newest_first


@pytest.fixture
def _clock_in_tokyo() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_clock_in_tokyo")
def test_offsets_are_respected_and_times_without_one_are_utc() -> None:
    items = [
        item("first", last_updated="2026-05-01T12:00:00+05:00"),
        item("second", last_updated="2026-05-01T08:00"),
        item("third", last_updated="2026-05-01T09:00:00z"),
    ]
    assert order(items) == ["third", "second", "first"]


def test_recency_counts_from_the_current_time_by_default() -> None:
    month_ago = (datetime.now(UTC) - timedelta(days=30)).isoformat()
    args: dict[str, Any] = {"items": [item("a", last_updated=month_ago)], "half_life_days": 30}
    PARAMETERS.fill_defaults(args)
    data = execute(args, None).data  # type: ignore[arg-type]
    assert data["results"][0]["score"] == pytest.approx(0.5, abs=0.001)


def test_an_unreadable_date_is_unknown_and_reported() -> None:
    data = run(
        [
            item("bad", last_updated="3 days ago"),
            item("new", last_updated="2026-05-31"),
            item("old", last_updated="2020-01-01"),
        ]
    )
    assert [result["id"] for result in data["results"]] == ["new", "bad", "old"]
    assert data["results"][1]["unknown"] == ["recency"]
    assert data["notes"] == ["The last_updated of bad is not an ISO 8601 date and was not used."]


def test_many_bad_dates_are_reported_briefly() -> None:
    items = [item(f"{at:02}" + "x" * 400, "T", last_updated="soon", score=0.5) for at in range(20)]
    (note,) = run(items)["notes"]
    assert "and 17 more" in note
    assert len(note) < 300


# Preference


def test_preferred_types_and_tags_move_up() -> None:
    items = [
        item("neither", type="doc", score=0.6),
        item("type", type="Project", score=0.5),
        item("tag", type="doc", tags=["BRANDING"], score=0.5),
        item("both", type="project", tags=["branding", "web"], score=0.5),
    ]
    data = run(items, prefer={"types": ["project", "person"], "tags": ["branding"]})
    preferences = {result["id"]: result["reasons"]["preference"] for result in data["results"]}
    assert preferences == {"both": 1.0, "type": 0.5, "tag": 0.5, "neither": 0.0}
    assert data["results"][0]["id"] == "both"
    assert data["results"][-1]["id"] == "neither"


def test_more_preferred_tags_rank_higher() -> None:
    items = [item("one", tags=["a"]), item("two", tags=["a", "b"]), item("zero")]
    results = run(items, prefer={"tags": ["a", "b"]})["results"]
    assert [(result["id"], result["score"]) for result in results] == [
        ("two", 1.0),
        ("one", 0.5),
        ("zero", 0.0),
    ]


def test_an_empty_preference_is_ignored() -> None:
    assert "preference" not in run([item("a", score=0.5)], prefer={"types": [], "tags": []})["weights"]


# Weights and unknown values


def test_the_score_is_the_weighted_mean_of_the_reasons() -> None:
    items = [item("a", "Atlas", score=0.5, last_updated="2025-12-03"), item("b", "Other", score=1.0)]
    data = run(items, query="atlas", weights={"relevance": 1, "score": 0.5, "recency": 0.5})
    assert data["weights"] == {"relevance": 0.5, "score": 0.25, "recency": 0.25}
    first = data["results"][0]
    assert first["reasons"] == {"relevance": 1.0, "score": 0.5, "recency": 0.5}
    assert first["score"] == pytest.approx(0.5 * 1 + 0.25 * 0.5 + 0.25 * 0.5)


def test_an_omitted_weight_keeps_its_default() -> None:
    data = run([item("a", score=0.5, last_updated="2026-01-01")], weights={"recency": 0.4})
    assert data["weights"] == {"score": 0.5, "recency": 0.5}


def test_a_signal_that_no_item_has_is_ignored() -> None:
    data = run([item("a", score=0.9), item("b", score=0.3)])
    assert data["weights"] == {"score": 1.0}
    assert [result["score"] for result in data["results"]] == [0.9, 0.3]


def test_an_unknown_value_moves_neither_up_nor_down() -> None:
    items = [item("low", score=0.1), item("mid", score=0.7), item("high", score=0.9), item("unknown")]
    results = run(items)["results"]
    assert [result["id"] for result in results] == ["high", "mid", "unknown", "low"]
    assert results[2]["reasons"] == {"score": 0.7}
    assert results[2]["unknown"] == ["score"]
    assert all("unknown" not in result for result in results if result["id"] != "unknown")


def test_missing_ranking_signals_are_a_failure_with_advice() -> None:
    failure = refuse([item("a"), item("b")])
    assert "nothing to rank by" in failure.message
    assert "query" in (failure.suggestion or "")


def test_weights_that_disable_every_signal_are_a_failure() -> None:
    failure = refuse([item("a", score=0.5)], weights={"score": 0})
    assert "score" in failure.message
    assert "above 0" in (failure.suggestion or "")


def test_an_empty_list_gives_no_results() -> None:
    assert run([]) == {"results": [], "total": 0, "duplicates": 0}


def test_now_must_be_a_date() -> None:
    failure = refuse([item("a", score=0.5)], now="next Tuesday")
    assert "next Tuesday" in failure.message


# Order and duplicates


def test_ties_are_broken_by_given_score_update_and_id() -> None:
    items = [
        item("d"),
        item("c", score=0.2),
        item("b", score=0.8, last_updated="2026-01-01"),
        item("a", score=0.8, last_updated="2025-01-01"),
        item("e"),
    ]
    same = {"prefer": {"types": ["x"]}, "weights": {**ONLY, "preference": 1}}
    assert order(items, **same) == ["b", "a", "c", "d", "e"]


def test_the_best_duplicate_is_kept_and_names_the_others() -> None:
    data = run(
        [
            item("web-1", "Vector Databases, Compared!", score=0.4),
            item("kb-7", "Vector databases compared", score=0.9),
            item("kb-7", "An older title", score=0.3),
            item("web-2", "Compared: vector databases", score=0.8),
            item("other", "Graph databases compared", score=0.5),
        ]
    )
    assert [result["id"] for result in data["results"]] == ["kb-7", "other"]
    assert data["results"][0]["same_as"] == ["web-2", "web-1"]
    assert "same_as" not in data["results"][1]
    assert (data["total"], data["duplicates"]) == (5, 3)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"title": "Budget 2025"}, {"title": "Budget 2026"}),
        ({"title": "Contract (signed)"}, {"title": "Contract (unsigned)"}),
        ({"title": "Plan A"}, {"title": "Plan B"}),
        ({"title": "Atlas", "type": "project"}, {"title": "Atlas", "type": "person"}),
        (
            {"title": "Weekly notes", "snippet": "Printer moved to the second floor"},
            {"title": "Weekly notes", "snippet": "New contract with the harbour signed"},
        ),
        ({"title": "???"}, {"title": "!!!"}),
    ],
)
def test_similar_items_are_not_duplicates(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert run([{"id": "1", "score": 0.5, **one}, {"id": "2", "score": 0.5, **other}])["duplicates"] == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            {"title": "Weekly notes", "snippet": "New contract with the harbour signed on Monday by both"},
            {"title": "Weekly notes", "snippet": "New contract with the harbour"},
        ),
        ({"title": "Atlas", "type": "Project"}, {"title": "ATLAS", "type": "project"}),
        ({"title": "Atlas", "type": "project", "snippet": "A map"}, {"title": "Atlas"}),
        ({"title": "議事録"}, {"title": "議事録。"}),
        ({"title": "???"}, {"title": "???"}),
    ],
)
def test_duplicates_are_recognised(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert run([{"id": "1", "score": 0.5, **one}, {"id": "2", "score": 0.5, **other}])["duplicates"] == 1


def test_duplicates_are_kept_on_request() -> None:
    items = [item("x", "Budget", score=0.5), item("x", "Budget", score=0.9)]
    data = run(items, deduplicate=False)
    assert [result["score"] for result in data["results"]] == [0.9, 0.5]
    assert data["duplicates"] == 0


def test_duplicates_do_not_count_towards_the_limit() -> None:
    items = [item("same", score=0.9 - at / 100) for at in range(5)] + [item("other", score=0.1)]
    assert order(items, top_k=2) == ["same", "other"]


# Properties

SMALL_TEXT = st.text(st.sampled_from("ab éß.9会議"), min_size=1, max_size=12)
ITEM = st.fixed_dictionaries(
    {"id": st.sampled_from("abcdefgh"), "title": SMALL_TEXT},
    optional={
        "snippet": SMALL_TEXT,
        "score": st.floats(0, 1),
        "last_updated": st.sampled_from(
            ["2026-05-30", "2019-01-01", "1900-01-01T00:00:00+02:00", "2030-01-01", "?"]
        ),
        "tags": st.lists(st.sampled_from(["a", "B", "c"]), max_size=3),
        "type": st.sampled_from(["doc", "Project"]),
    },
)
ITEMS = st.lists(ITEM, min_size=1, max_size=12)
WEIGHTS = st.fixed_dictionaries({}, optional={name: st.floats(0.01, 1) for name in ONLY})
ARGS = st.fixed_dictionaries(
    {
        "query": st.just("a 会議 9"),
        "weights": WEIGHTS,
        "top_k": st.integers(1, 10),
        "deduplicate": st.booleans(),
    },
    optional={
        "prefer": st.fixed_dictionaries(
            {}, optional={"types": st.just(["doc"]), "tags": st.just(["b", "c"])}
        ),
        "half_life_days": st.floats(1, 3650),
    },
)


@given(ITEMS, ARGS, st.randoms())
@settings(deadline=None)
def test_the_order_of_the_items_does_not_matter(items: list[dict[str, Any]], args: Any, random: Any) -> None:
    shuffled = random.sample(items, len(items))
    assert run(shuffled, **args) == run(items, **args)


@given(ITEMS, ARGS)
@settings(deadline=None)
def test_scores_are_sorted_within_bounds_and_explained(items: list[dict[str, Any]], args: Any) -> None:
    data = run(items, **args)
    results = data["results"]
    scores = [result["score"] for result in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert [result["rank"] for result in results] == list(range(1, len(results) + 1))
    assert len(results) == min(args["top_k"], len(items) - data["duplicates"])
    assert sum(data["weights"].values()) == pytest.approx(1, abs=0.02)
    for result in results:
        explained = sum(data["weights"][name] * value for name, value in result["reasons"].items())
        assert result["score"] == pytest.approx(explained, abs=0.04)


@given(ITEMS, ARGS)
@settings(deadline=None)
def test_top_k_only_truncates_the_ranking(items: list[dict[str, Any]], args: Any) -> None:
    cut, whole = run(items, **args), run(items, **{**args, "top_k": 10})
    assert cut["results"] == whole["results"][: args["top_k"]]


@given(ITEMS, ARGS)
@settings(deadline=None)
def test_deduplication_keeps_every_id_exactly_once(items: list[dict[str, Any]], args: Any) -> None:
    data = run(items, **{**args, "deduplicate": True, "top_k": 10})
    ids = [result["id"] for result in data["results"]]
    assert len(ids) == len(set(ids))
    named = {id_ for result in data["results"] for id_ in (result["id"], *result.get("same_as", ()))}
    assert named == {each["id"] for each in items}


@given(st.lists(st.floats(0, 1), min_size=2, max_size=10), st.data())
@settings(deadline=None)
def test_a_higher_given_score_never_ranks_lower(scores: list[float], data: st.DataObject) -> None:
    items = [item(str(at), score=score) for at, score in enumerate(scores)] + [item("unknown")]
    by_score = {"weights": {**ONLY, "score": 1}, "top_k": 10}
    raised = data.draw(st.integers(0, len(scores) - 1))
    higher = data.draw(st.floats(scores[raised], 1))
    items_after = [{**each, "score": higher} if each["id"] == str(raised) else each for each in items]
    places = [[*order(each, **by_score), str(raised)].index(str(raised)) for each in (items, items_after)]
    assert places[1] <= places[0]

    ranked = [float(result["score"]) for result in run(items[:-1], **by_score)["results"]]
    assert ranked == pytest.approx(sorted(scores, reverse=True), abs=1e-4)


# The guide and the size of an answer


def _blocks(info: str) -> list[dict[str, Any]]:
    blocks = re.findall(rf"^```{info}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    return [json.loads(block) for block in blocks]


def test_the_examples_of_the_guide_work() -> None:
    examples = _blocks("json")
    assert len(examples) >= 6
    results = [run(**{"now": NOW, **example}) for example in examples]
    assert all(len(json.dumps(result)) < 1500 for result in results)
    (shown,) = _blocks("json result")
    assert shown in results


def test_the_defaults_in_the_guide_are_those_of_the_schema() -> None:
    defaults = SCHEMA["parameters"]["properties"]["weights"]["properties"]
    stated = re.search(
        r"`relevance` \(default (\S+)\), `score` \((\S+)\), `recency` \((\S+)\) .* \((\S+)\)", GUIDE
    )
    assert stated is not None
    assert [float(value) for value in stated.groups()] == [defaults[name]["default"] for name in ONLY]


def test_five_typical_results_fit_into_a_spoken_turn() -> None:
    items = [
        item(
            f"kb-{at}",
            f"A title of quite ordinary length {at}",
            score=at / 10,
            last_updated="2026-01-01",
            type="doc",
        )
        for at in range(10)
    ]
    data = run(items, query="title", prefer={"types": ["doc"]})
    assert len(data["results"]) == 5
    assert len(json.dumps(data)) < 1500
