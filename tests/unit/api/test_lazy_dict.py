"""LazyDict behaves as a dictionary, and creates its values when they are read."""

import copy
import pickle
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.lazy_dict import LazyDict

KEYS = ("a", "b", "c", "d")
GROUPS = ((10, 11, 12, 13), (20, 21, 22, 23))


def value_at(group, index):
    return group[index]


def late(rows):
    made = LazyDict(value_at)
    made.load({key: (GROUPS[group], index) for key, (group, index) in rows})
    return made


rows = st.lists(
    st.tuples(st.sampled_from(KEYS), st.tuples(st.sampled_from((0, 1)), st.integers(0, 3)))
)
keys = st.sampled_from((*KEYS, "absent"))


def _set(one, key):
    one[key] = 7


def _del(one, key):
    del one[key]


def _load(one, key):
    if isinstance(one, LazyDict):
        one.load({key: (GROUPS[0], 2)})
    else:
        one[key] = GROUPS[0][2]


def _discard(one, key):
    if isinstance(one, LazyDict):
        one.discard(key)
    else:
        one.pop(key, None)


OPERATIONS = {
    "[]": lambda one, key: one[key],
    "get": lambda one, key: one.get(key),
    "get or": lambda one, key: one.get(key, 5),
    "in": lambda one, key: key in one,
    "set": _set,
    "del": _del,
    "load": _load,
    "pop": lambda one, key: one.pop(key),
    "pop or": lambda one, key: one.pop(key, 5),
    "discard": _discard,
    "popitem": lambda one, key: one.popitem(),
    "setdefault": lambda one, key: one.setdefault(key, 5),
    "update": lambda one, key: one.update({key: 6}),
    "|=": lambda one, key: one.__ior__({key: 6}) is one,
    "values": lambda one, key: list(one.values()),
    "items": lambda one, key: list(one.items()),
    "keys": lambda one, key: list(one.keys()),
    "iter": lambda one, key: list(one),
    "reversed": lambda one, key: list(reversed(one)),
    "len": lambda one, key: len(one),
    "bool": lambda one, key: bool(one),
    "dict": lambda one, key: dict(one),
    "**": lambda one, key: {"first": 0, **one},
    "|": lambda one, key: one | {key: 6},
    "r|": lambda one, key: {key: 6} | one,
    "into": lambda one, key: {}.__ior__(one),
    "copy": lambda one, key: one.copy(),
    "copy.copy": lambda one, key: copy.copy(one),
    "deepcopy": lambda one, key: copy.deepcopy(one),
    "pickle": lambda one, key: pickle.loads(pickle.dumps(one)),
    "repr": lambda one, key: repr(one),
    "==": lambda one, key: one == {"a": 10},
    "!=": lambda one, key: one != {"a": 10},
}


def outcome(operation, one, key):
    try:
        return OPERATIONS[operation](one, key)
    except KeyError:
        return KeyError


@given(rows, st.lists(st.tuples(st.sampled_from([*OPERATIONS]), keys)))
def test_a_lazy_dict_behaves_as_a_dictionary(loaded, operations):
    tested, plain = late(loaded), {key: GROUPS[group][at] for key, (group, at) in loaded}
    for operation, key in operations:
        assert outcome(operation, tested, key) == outcome(operation, plain, key), operation
    assert list(tested.items()) == list(plain.items())


def test_a_value_is_created_when_it_is_first_read():
    calls = []
    tested = LazyDict(lambda group, index: calls.append(index) or group[index])
    tested.load({key: (GROUPS[0], index) for index, key in enumerate(KEYS)})
    assert tested.copy().keys() == {*KEYS}
    assert calls == []
    assert (tested["b"], tested["b"], calls) == (11, 11, [1])
    assert [key for key in tested if tested.row(key) is not None] == ["a", "c", "d"]
    assert [*tested.made()] == [("b", 11)]
    assert (tested.row("a"), tested.row("b"), tested.row("x")) == ((GROUPS[0], 0), None, None)
    assert [*tested.raw()] == [(GROUPS[0], 0), 11, (GROUPS[0], 2), (GROUPS[0], 3)]
    tested.discard("d")
    assert (calls, "d" in tested) == ([1], False)


def test_a_value_replaces_only_its_own_row():
    row = (GROUPS[0], 0)
    tested = LazyDict(value_at)
    tested.load({"a": row})
    tested.replace_row("a", (GROUPS[0], 0), 1)
    assert tested.row("a") is row
    tested.replace_row("a", row, 2)
    assert tested["a"] == 2


@given(rows, st.lists(keys))
def test_samples_are_values_of_the_same_group(found, read):
    """A value without a row is its own sample; each group is listed once."""
    one = late(found)
    for key in read:
        one.get(key)
    one["made"] = 7
    expected = [value[0][0] if isinstance(value, tuple) else value for value in list(one.raw())]
    assert list(one.samples()) == expected == [one.sample(key) for key in one]
    assert one.sample("missing") is None
    groups = [value[0] for value in one.raw() if isinstance(value, tuple)]
    assert list(one.groups()) == list(dict.fromkeys(groups))
    assert one.group_sizes() == Counter(map(id, groups))


def test_equality_does_not_depend_on_whether_values_have_been_created():
    one, other = late([("a", (0, 1))]), late([("a", (0, 1))])
    assert one == other
    assert one == {"a": 11}
    assert late([("a", (0, 1))]) != late([("a", (1, 1))])
    assert late([("a", (0, 1))]) != late([("b", (0, 1))])
