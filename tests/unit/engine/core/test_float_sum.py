"""The sum of floats does not depend on the version of Python."""

from fairlead.engine.core.float_sum import float_sum


def test_rounding_errors_are_those_of_go():
    assert float_sum([0.1] * 10) == 0.9999999999999999


def test_order_matters():
    assert [float_sum([1e16, 1.0, -1e16]), float_sum([1e16, -1e16, 1.0])] == [0.0, 1.0]


def test_no_values_give_the_integer_0():
    """Results print it as 0, not as 0.0."""
    assert repr(float_sum([])) == "0"
