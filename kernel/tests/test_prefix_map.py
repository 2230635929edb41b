"""The prefix map answers like a dict that is scanned."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield import prefix_map
from jackfield.prefix_map import PrefixMap

# Few characters, so that many keys share prefixes; the last ones sort around the end of the code points.
KEYS = st.text(st.sampled_from("ab/_\u00e9\ud7ff\ue000\U0010ffff"), max_size=5)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers()),
        st.tuples(st.sampled_from(["pop", "delete"]), KEYS, st.just(0)),
    ),
    max_size=200,
)


def apply(change: tuple[str, str, int], found: PrefixMap[int], model: dict[str, int]) -> None:
    act, key, value = change
    if act == "set":
        found[key] = model[key] = value
    elif act == "pop":
        assert found.pop(key) == model.pop(key, None)
    elif key in model:
        del found[key], model[key]
    else:
        with pytest.raises(KeyError):
            del found[key]


@pytest.mark.parametrize("chunk", [2, 3, 8, 512])
def test_any_changes_match_a_dict_that_is_scanned(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small chunks, so that few keys split and empty them.
    monkeypatch.setattr(prefix_map, "MAX_CHUNK", chunk)

    @settings(max_examples=150, deadline=None)
    @given(CHANGES, st.lists(KEYS, max_size=10))
    def compare(changes: list[tuple[str, str, int]], prefixes: list[str]) -> None:
        found, model = PrefixMap[int](), dict[str, int]()
        for change in changes:
            apply(change, found, model)
        assert list(found) == sorted(model)
        assert dict(found.items()) == model
        assert len(found) == len(model)
        for prefix in ["", *prefixes, *(key[:2] for key in model), *model]:
            assert found.with_prefix(prefix) == sorted(key for key in model if key.startswith(prefix))
            assert found.get(prefix) == model.get(prefix)
            assert (prefix in found) == (prefix in model)

    compare()


def test_many_keys_in_any_order_are_sorted() -> None:
    keys = [f"session/{number * 7919 % 20_000:05}/turn" for number in range(20_000)]
    found = PrefixMap[int]()
    for number, key in enumerate(keys):
        found[key] = number
    assert list(found) == sorted(keys)
    assert found.with_prefix("session/0012") == [f"session/{number:05}/turn" for number in range(120, 130)]
    assert len(found.with_prefix("session/1")) == 10_000
    for key in keys[::2]:
        del found[key]
    assert list(found) == sorted(keys[1::2])
    for key in keys[1::2]:
        assert found.pop(key) is not None
    assert list(found) == found.with_prefix("") == []
