"""Go's `sort.Slice`: pattern-defeating quicksort, which is deterministic but not stable.

If upstream sorts elements that compare equal, their order depends on the algorithm. Up to twelve
elements are sorted by insertion, which is stable. If there are more elements, equal elements may
change places. Keys are compared with `<` only, as upstream's less functions do.

upstream: Go's src/sort/zsortfunc.go
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

Element = TypeVar("Element")

_INSERTION_MAX: Final = 12
_SHORTEST_NINTHER: Final = 50
_SHORTEST_SHIFTING: Final = 50
_MAX_STEPS: Final = 5
_MAX_SWAPS: Final = 12
_WORD: Final = 2**64 - 1

_UNKNOWN, _INCREASING, _DECREASING = range(3)


def go_sorted(elements: list[Element], keys: list[Any]) -> list[Element]:
    """Return `elements` sorted by `keys`, in exactly the order that Go's sort.Slice produces."""
    n = len(keys)
    if n <= _INSERTION_MAX:
        return [elements[i] for i in sorted(range(n), key=keys.__getitem__)]
    sort = _Sort(keys)
    sort.quicksort(0, n, n.bit_length())
    return [elements[i] for i in sort.order]


class _Sort:
    """The state of one sort.

    `order[i]` is the original index of the element that is now at position i. `keys[i]` is the key
    of this element.
    """

    def __init__(self, keys: list[Any]) -> None:
        self.keys = list(keys)
        self.order = list(range(len(keys)))

    def swap(self, i: int, j: int) -> None:
        self.keys[i], self.keys[j] = self.keys[j], self.keys[i]
        self.order[i], self.order[j] = self.order[j], self.order[i]

    def quicksort(self, a: int, b: int, limit: int) -> None:
        """Sort the range [a, b); use heap sort after `limit` bad partitions."""
        keys = self.keys
        balanced = partitioned = True
        while True:
            length = b - a
            if length <= _INSERTION_MAX:
                self._insertion_sort(a, b)
                return
            if limit == 0:
                self._heap_sort(a, b)
                return
            if not balanced:
                self._break_patterns(a, b)
                limit -= 1
            pivot, hint = self.choose_pivot(a, b)
            if hint == _DECREASING:
                self._reverse(a, b)
                pivot = (b - 1) - (pivot - a)
                hint = _INCREASING
            if balanced and partitioned and hint == _INCREASING and self._partial(a, b):
                return
            # Elements equal to the predecessor of the range need no further sorting.
            if a > 0 and not keys[a - 1] < keys[pivot]:
                a = self._partition_equal(a, b, pivot)
                continue
            middle, partitioned = self._partition(a, b, pivot)
            left, right = middle - a, b - middle
            threshold = length // 8
            if left < right:
                balanced = left >= threshold
                self.quicksort(a, middle, limit)
                a = middle + 1
            else:
                balanced = right >= threshold
                self.quicksort(middle + 1, b, limit)
                b = middle

    def choose_pivot(self, a: int, b: int) -> tuple[int, int]:
        """Return the index of a pivot for [a, b), and the order that the elements seem to have.

        The order is _INCREASING, _DECREASING or _UNKNOWN. It is the order of the few elements that
        are compared to choose the pivot.
        """
        length = b - a
        swaps = 0
        i, j, k = (a + length // 4 * n for n in (1, 2, 3))
        if length >= 8:
            if length >= _SHORTEST_NINTHER:
                i, swaps = self._median(i - 1, i, i + 1, swaps)
                j, swaps = self._median(j - 1, j, j + 1, swaps)
                k, swaps = self._median(k - 1, k, k + 1, swaps)
            j, swaps = self._median(i, j, k, swaps)
        if swaps == 0:
            return j, _INCREASING
        return j, _DECREASING if swaps == _MAX_SWAPS else _UNKNOWN

    def _median(self, a: int, b: int, c: int, swaps: int) -> tuple[int, int]:
        keys = self.keys
        if keys[b] < keys[a]:
            a, b, swaps = b, a, swaps + 1
        if keys[c] < keys[b]:
            b, c, swaps = c, b, swaps + 1
        if keys[b] < keys[a]:
            a, b, swaps = b, a, swaps + 1
        return b, swaps

    def _insertion_sort(self, a: int, b: int) -> None:
        part = sorted(range(a, b), key=self.keys.__getitem__)
        self.keys[a:b], self.order[a:b] = (
            [self.keys[i] for i in part],
            [self.order[i] for i in part],
        )

    def _reverse(self, a: int, b: int) -> None:
        self.keys[a:b] = self.keys[a:b][::-1]
        self.order[a:b] = self.order[a:b][::-1]

    def _partial(self, a: int, b: int) -> bool:  # noqa: C901 - one algorithm, as upstream has it
        """Sort the range [a, b) if it is almost sorted; return whether this succeeded."""
        keys = self.keys
        i = a + 1
        for _ in range(_MAX_STEPS):
            while i < b and not keys[i] < keys[i - 1]:
                i += 1
            if i == b:
                return True
            if b - a < _SHORTEST_SHIFTING:
                return False
            self.swap(i, i - 1)
            if i - a >= 2:
                for j in range(i - 1, 0, -1):
                    if not keys[j] < keys[j - 1]:
                        break
                    self.swap(j, j - 1)
            if b - i >= 2:
                for j in range(i + 1, b):
                    if not keys[j] < keys[j - 1]:
                        break
                    self.swap(j, j - 1)
        return False

    def _partition_equal(self, a: int, b: int, pivot: int) -> int:
        """Move the elements that are equal to the pivot to the front of [a, b).

        Return the index after these elements.
        """
        keys = self.keys
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        while True:
            while i <= j and not keys[a] < keys[i]:
                i += 1
            while i <= j and keys[a] < keys[j]:
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i += 1
            j -= 1

    def _partition(self, a: int, b: int, pivot: int) -> tuple[int, bool]:
        """Split [a, b) at the pivot.

        Return the index of the pivot, and a flag: True if no element had to move.
        """
        keys = self.keys
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        while i <= j and keys[i] < keys[a]:
            i += 1
        while i <= j and not keys[j] < keys[a]:
            j -= 1
        if i > j:
            self.swap(j, a)
            return j, True
        self.swap(i, j)
        i += 1
        j -= 1
        while True:
            while i <= j and keys[i] < keys[a]:
                i += 1
            while i <= j and not keys[j] < keys[a]:
                j -= 1
            if i > j:
                break
            self.swap(i, j)
            i += 1
            j -= 1
        self.swap(j, a)
        return j, False

    def _break_patterns(self, a: int, b: int) -> None:
        """Swap three elements around the middle of [a, b) with pseudo-randomly chosen elements."""
        length = b - a
        if length < 8:
            return
        random = length
        modulus = 1 << length.bit_length()
        start = a + (length // 4) * 2 - 1
        for i in range(3):
            random ^= (random << 13) & _WORD
            random ^= random >> 7
            random ^= (random << 17) & _WORD
            other = random & (modulus - 1)
            if other >= length:
                other -= length
            self.swap(start + i, a + other)

    def _heap_sort(self, a: int, b: int) -> None:
        length = b - a
        for i in range((length - 1) // 2, -1, -1):
            self._sift_down(i, length, a)
        for i in range(length - 1, -1, -1):
            self.swap(a, a + i)
            self._sift_down(0, i, a)

    def _sift_down(self, low: int, high: int, first: int) -> None:
        keys = self.keys
        root = low
        while True:
            child = 2 * root + 1
            if child >= high:
                return
            if child + 1 < high and keys[first + child] < keys[first + child + 1]:
                child += 1
            if not keys[first + root] < keys[first + child]:
                return
            self.swap(first + root, first + child)
            root = child


def go_resorted(elements: list[Element], keys: list[int]) -> list[Element]:
    """Return the result of `go_sorted` for a list in which at most one element is out of place.

    Go sorts most such lists by insertion. Insertion is stable, so Python's sort gives the same
    result. `go_sorted` sorts the other lists: lists of 13 to 49 elements, and longer lists whose
    pivot samples (see `choose_pivot`) are not in increasing order.
    """
    n = len(keys)
    if n > _INSERTION_MAX:
        if n < _SHORTEST_SHIFTING:
            return go_sorted(elements, keys)
        if _Sort(keys).choose_pivot(0, n)[1] != _INCREASING:
            return go_sorted(elements, keys)
    return [elements[i] for i in sorted(range(n), key=keys.__getitem__)]
