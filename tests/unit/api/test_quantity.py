"""Quantities: parsing, rounding and the canonical form, as in upstream."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.quantity import (
    INT64_MAX,
    NO_QUANTITY,
    Format,
    Quantity,
    QuantityError,
    approximate_value,
    canonical,
    milli_value,
    parse_quantity,
    rounded_text,
    whole_value,
)

NANO = 10**9
EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@pytest.mark.parametrize(
    ("text", "nano", "family"),
    [
        ("0", 0, Format.DECIMAL_SI),
        ("100m", 10**8, Format.DECIMAL_SI),
        ("+1.5", 1_500_000_000, Format.DECIMAL_SI),
        ("-1.5", -1_500_000_000, Format.DECIMAL_SI),
        (".5", 500_000_000, Format.DECIMAL_SI),
        ("5.", 5 * NANO, Format.DECIMAL_SI),
        ("007", 7 * NANO, Format.DECIMAL_SI),
        (" 1 ", NANO, Format.DECIMAL_SI),
        ("334000u", 334_000_000, Format.DECIMAL_SI),
        ("1E", 10**18 * NANO, Format.DECIMAL_SI),
        ("1E3", 1000 * NANO, Format.DECIMAL_EXPONENT),
        ("1e3", 1000 * NANO, Format.DECIMAL_EXPONENT),
        ("2e-1", 200_000_000, Format.DECIMAL_EXPONENT),
        ("1E+2", 100 * NANO, Format.DECIMAL_EXPONENT),
        ("1Ki", 1024 * NANO, Format.BINARY_SI),
        ("0.5Gi", 2**29 * NANO, Format.BINARY_SI),
        ("0.1Ki", 102_400_000_000, Format.BINARY_SI),
        ("0.0001Ki", 102_400_000, Format.DECIMAL_SI),
        ("0.0Gi", 0, Format.BINARY_SI),
        ("Ki", 0, Format.BINARY_SI),
        (".", 0, Format.DECIMAL_SI),
        (7, 7 * NANO, Format.DECIMAL_SI),
        (0.25, 250_000_000, Format.DECIMAL_SI),
        (1e22, 10**22 * NANO, Format.DECIMAL_EXPONENT),
    ],
)
def test_a_text_is_parsed_to_its_exact_amount_and_family(text, nano, family):
    """Every suffix, sign and spelling that upstream accepts, and JSON numbers."""
    parsed = parse_quantity(text)
    assert (parsed.nano, parsed.format) == (nano, family)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0.1n", 1),
        ("1.1n", 2),
        ("-0.1n", -1),
        ("1e-10", 1),
        ("0.0000000001", 1),
        ("0.0000000001Ki", 103),
        ("1e-1000", 1),
    ],
)
def test_fractions_of_a_nano_are_rounded_away_from_zero(text, nano):
    """A positive amount never becomes 0."""
    assert parse_quantity(text).nano == nano


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("8Ei", INT64_MAX),
        ("100Ei", INT64_MAX),
        ("-100Ei", -INT64_MAX),
        ("7Ei", 7 * 2**60),
        ("9223372036854775807", INT64_MAX),
    ],
)
def test_a_binary_quantity_is_capped_at_int64(text, whole):
    """The cap is upstream's maxAllowed; decimal quantities near it stay exact."""
    assert parse_quantity(text).nano == whole * NANO


def test_a_decimal_quantity_is_not_capped_but_its_whole_value_is():
    """10E exceeds int64: it is compared exactly, and its whole value is the maximum of int64."""
    assert parse_quantity("10E").nano == 10**19 * NANO
    assert parse_quantity("10E") > parse_quantity("8Ei")
    assert whole_value("10E") == INT64_MAX
    assert milli_value("1E") == INT64_MAX
    assert whole_value("-10E") == -INT64_MAX


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [
        ("0.1m", 1, 1),
        ("1.0001", 1001, 2),
        ("100m", 100, 1),
        ("2", 2000, 2),
        ("-1.0001", -1001, -2),
        ("0.5Gi", 2**29 * 1000, 2**29),
        ("0", 0, 0),
    ],
)
def test_milli_and_whole_values_round_up(text, milli, whole):
    """They are rounded away from zero, like the scheduler's MilliValue and Value."""
    assert (milli_value(text), whole_value(text)) == (milli, whole)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("700m", 700 * 0.001),
        ("0.7", 7 * 0.1),
        ("2", 2.0),
        (3, 3.0),
        ("-500m", -0.5),
        ("1e3", 1000.0),
        ("2k", 2000.0),
        ("1.5Gi", 1.5 * 2**30),
    ],
)
def test_approximate_values_multiply_floats(text, value):
    assert approximate_value(text) == value


def test_an_invalid_quantity_has_no_approximate_value():
    with pytest.raises(QuantityError):
        approximate_value("1x")


@pytest.mark.parametrize(
    "text",
    ["", " ", "+-1", "1.2.3", "1i", "1mi", "1 Gi", "Gi1", "1e", "1e+", "1ee3", "1KiB", "0x1", "1_0",
     "aoeu", ".5i", "-3.01e-", "1+3", "nan", "inf", "\u0661", "1" * 1001, "1e1001",
     "1e-99999999999"],
)  # fmt: skip
def test_a_text_that_is_not_a_quantity_is_refused(text):
    """QuantityError is raised quickly for any text."""
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize("text", [float("nan"), float("inf"), True, None, [1]])
def test_json_values_that_are_not_numbers_are_refused(text):
    """A boolean is not a quantity, although it is an int in Python."""
    with pytest.raises((QuantityError, TypeError)):
        parse_quantity(text)


def test_a_refusal_has_upstreams_message():
    """Users match on these messages."""
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        parse_quantity("1.2.3")
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        parse_quantity("1i")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0"),
        ("0.0Gi", "0"),
        ("1.5", "1500m"),
        ("1500", "1500"),
        ("10000", "10k"),
        ("1000m", "1"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("1025", "1025"),
        ("1.0001Ki", "1024102400u"),
        ("-2048Ki", "-2Mi"),
        ("1e4", "10e3"),
        ("100e-3", "100e-3"),
        ("1e21", "1e21"),
        ("1000E", "1000E"),
        ("8Ei", "9223372036854775807"),
    ],
)
def test_the_canonical_form_equals_upstreams(text, written):
    """The form has the largest suffix of the family that needs no fraction."""
    assert canonical(parse_quantity(text)) == written


def test_a_quantity_can_be_written_in_another_family():
    """2 Ki is written in all three families."""
    quantity = Quantity(nano=2048 * NANO)
    forms = [canonical(quantity, family) for family in Format]
    assert forms == ["2048", "2Ki", "2048"]
    assert canonical(Quantity(nano=10**15), Format.DECIMAL_EXPONENT) == "1e6"


def test_equality_and_order_of_quantities_ignore_the_format():
    """Equality, hash and order depend only on the amount."""
    assert parse_quantity("1Ki") == parse_quantity("1024") == parse_quantity("1.024e3")
    assert len({parse_quantity("1Ki"), parse_quantity("1024")}) == 1
    assert parse_quantity("999m") < parse_quantity("1") < parse_quantity("1k")


digits = st.text("0123456789", min_size=1, max_size=12)
numbers = st.builds(
    lambda sign, whole, fraction: sign + whole + fraction,
    st.sampled_from(["", "+", "-"]),
    digits,
    st.one_of(st.just(""), st.just("."), digits.map(lambda text: f".{text}")),
)
suffixes = st.one_of(
    st.sampled_from([*EXPONENTS, *BINARY]),
    st.integers(-12, 12).map(lambda exponent: f"e{exponent}"),
    st.integers(-12, 12).map(lambda exponent: f"E{exponent:+}"),
)
texts = st.tuples(numbers, suffixes).map("".join)


def factor_of(suffix: str) -> Fraction:
    """Return the factor of a suffix, computed independently of the parser."""
    if suffix in BINARY:
        return Fraction(2) ** BINARY[suffix]
    return Fraction(10) ** EXPONENTS.get(suffix, int(suffix[1:]) if suffix[1:] else 0)


@given(numbers, suffixes)
def test_parsing_is_exact_up_to_the_nano(number, suffix):
    """The parsed amount is rounded away from zero by less than a nano, or capped."""
    exact = Fraction(number.removesuffix(".")) * factor_of(suffix)
    if suffix in BINARY:
        exact = max(min(exact, Fraction(INT64_MAX)), Fraction(-INT64_MAX))
    parsed = Fraction(parse_quantity(number + suffix).nano, NANO)
    assert abs(exact) <= abs(parsed) < abs(exact) + Fraction(1, NANO)


@given(texts, st.sampled_from([None, *Format]))
def test_every_quantity_round_trips(text, family):
    """The canonical text is parsed to the same amount, and is its own canonical form."""
    quantity = parse_quantity(text)
    written = canonical(quantity, family)
    again = parse_quantity(written)
    assert again == quantity
    assert canonical(again, family or quantity.format) == written


@given(texts, texts)
def test_rounding_preserves_the_order(left, right):
    """A smaller quantity never has the larger whole value."""
    if parse_quantity(left) <= parse_quantity(right):
        assert milli_value(left) <= milli_value(right)
        assert whole_value(left) <= whole_value(right)


@given(st.text("0123456789.eEinumkKMGTP+- ", max_size=8))
def test_any_text_is_parsed_or_refused(text):
    """No other error occurs for any combination of permitted characters."""
    with contextlib.suppress(QuantityError):
        assert isinstance(parse_quantity(text).nano, int)


@pytest.mark.parametrize("text", ["1e200", "9" * 255, "0" * 300])
def test_a_quantity_that_is_too_long_or_too_large_is_refused(text):
    """So every quantity can be written completely and parsed again."""
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("+", "0"), ("-", "0"), ("+1", "+1"), ("007", "007"), ("1.500", "1.500"),
        ("1.005", "1.005"), ("0.500", "500m"), ("1.0", "1"), ("1.5", "1500m"),
        ("1.5000", "1500m"), ("1000m", "1"), ("2000", "2k"), ("1e3", "1e3"), ("1.5e3", "1500"),
        ("6115.987e3", "6115.987e3"), ("1E3", "1E3"), ("1e2", "100"), ("+5Gi", "+5Gi"),
        ("1500Mi", "1500Mi"), ("1024Mi", "1Gi"), ("0001Gi", "0001Gi"), ("1.5Gi", "1536Mi"),
        ("9205u", "9205u"), ("1.", "1."), ("1.G", "1.G"), (".5", "500m"), ("8Ki", "8Ki"),
        ("Ki", "0"), ("e-9", "0"), ("-1.5Gi", "-1536Mi"), ("-0", "0"), ("1e-3", "1e-3"),
        ("1000000e-3", "1e3"),
    ],
)  # fmt: skip
def test_the_canonical_form_of_unusual_texts_equals_upstreams(text, kept):
    """Recorded from upstream 1.36.4: some texts are canonical, though they could be shorter."""
    assert canonical(parse_quantity(text)) == kept


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Pi", "unable to parse numeric part of quantity"),
        (".Ei", "unable to parse numeric part of quantity"),
        ("e-10", "unable to parse numeric part of quantity"),
        ("1ki", "unable to parse quantity's suffix"),
        ("1K", "unable to parse quantity's suffix"),
        ("--1", "unable to parse quantity's suffix"),
        ("1 Gi", NO_QUANTITY),
        ("1e3m", NO_QUANTITY),
        ("1..2", NO_QUANTITY),
        ("", NO_QUANTITY),
    ],
)
def test_a_refusal_names_the_violated_rule(text, rule):
    """Recorded from upstream 1.36.4."""
    with pytest.raises(QuantityError) as refused:
        parse_quantity(text)
    assert refused.value.rule == rule


def test_a_computed_quantity_is_written_in_canonical_form():
    assert canonical(Quantity(nano=parse_quantity("1.500").nano)) == "1500m"
    assert canonical(parse_quantity("1500Mi"), Format.DECIMAL_SI) == "1572864k"


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        pytest.param("memory", (771 << 30) + 1, "772Gi", id="bytes in Gi"),
        pytest.param("ephemeral-storage", (5 << 20) + 1, "6Mi", id="bytes below a Gi in Mi"),
        pytest.param("memory", 1000, "1k", id="bytes below a Mi are exact"),
        pytest.param("cpu", 1250, "1250m", id="cpu is exact"),
        pytest.param("nvidia.com/gpu", 4, "4", id="other resources are exact"),
    ],
)
def test_bytes_are_rounded_up_for_readers(name, amount, text):
    assert rounded_text(name, amount) == text
