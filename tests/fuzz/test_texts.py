"""Texts that users write are parsed, or refused with the documented error of the parser."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.strategies import json_values, texts
from tests.fuzz.upstream import expect_said

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.pods.image import normalized_image_name
from fairlead.api.pods.usage import parse_usage
from fairlead.api.quantity import Format, QuantityError, canonical, parse_quantity
from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.api.text.pattern import compiled_pattern
from fairlead.api.timestamp import (
    format_duration,
    format_micro_time,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)
from fairlead.apiserver.apiextensions.json_path import JsonPathError, json_path
from fairlead.apiserver.auth.authentication.token import bearer_token
from fairlead.apiserver.endpoints.collection.list_page import Token, decoded, encoded
from fairlead.apiserver.endpoints.request.request_info import request_info_of
from fairlead.apiserver.endpoints.request.selector import selection_predicate
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.negotiation.media_type import (
    clauses,
    error_media_type,
    negotiated_media_type,
)
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.schema.gojson.time_text import InstantError, read_micro_time, read_time
from fairlead.apiserver.validation.batch.schedule import schedule_problem, time_zone_problem
from fairlead.engine.core.cron_schedule import ScheduleError, read_schedule

NOW = parse_timestamp("2026-01-01T00:00:00Z")
KINDS = {kind.resource: kind for kind in ServedKinds().all_kinds()}


@given(texts() | st.integers() | st.floats())
def test_a_quantity_is_parsed_and_formatted_or_refused(text):
    """The formatted text is parsed to the same amount, in any family of suffixes."""
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    for family in Format:
        assert parse_quantity(canonical(quantity, family)) == quantity
    assert abs(quantity.milli) <= 2**63
    assert abs(quantity.whole) <= abs(quantity.milli) + 1


@given(texts())
def test_a_duration_is_parsed_and_formatted_or_refused(text):
    try:
        duration = parse_duration(text)
    except ValueError:
        return
    assert parse_duration(format_duration(duration)) == duration


@given(texts())
def test_an_instant_is_parsed_and_formatted_or_refused(text):
    with suppress(InstantError):
        assert parse_timestamp(format_micro_time(read_micro_time(text))) is not None
    try:
        instant = read_time(text)
    except InstantError:
        with pytest.raises(ValueError, match="is not "):
            parse_timestamp(text)
        return
    assert instant - parse_timestamp(format_timestamp(instant)) < 10**9
    assert instant - parse_timestamp(format_micro_time(instant)) < 10**3


@given(texts(), st.dictionaries(texts(), texts(), max_size=2))
def test_a_label_selector_is_evaluated_or_refused(text, labels):
    try:
        wanted = parse_selector(text)
    except SelectorError:
        return
    assert selector_matches(wanted, labels) in (True, False)


@given(st.sampled_from(sorted(KINDS)), texts(), texts(), json_values())
def test_selectors_of_a_list_request_are_evaluated_or_refused(resource, labels, fields, value):
    obj = value if isinstance(value, dict) else {}
    try:
        wanted = selection_predicate(KINDS[resource], labels, fields)
    except ApiError as refusal:
        expect_said(refusal, 400)
        return
    assert wanted.matches({**obj, "metadata": {"name": "a"}, "spec": {}, "status": {}}) in (0, 1)


@given(texts())
def test_validation_of_names_and_values_raises_no_exception(text):
    assert isinstance((*label_key_problems(text), *label_value_problems(text)), tuple)
    assert isinstance(normalized_image_name(text), str)
    assert isinstance(bearer_token({"authorization": text}), str)


@given(texts(), json_values())
def test_a_json_path_is_evaluated_or_refused(text, value):
    try:
        path = json_path(text)
    except JsonPathError:
        return
    assert isinstance(path.find(value), list)


@given(texts(), texts())
def test_a_pattern_is_compiled_or_refused(expression, text):
    try:
        pattern = compiled_pattern(expression)
    except ValueError:
        return
    pattern.search(text)


@given(texts(), st.booleans(), st.booleans())
def test_a_media_type_is_negotiated_or_refused(accept, streams, is_list):
    assert error_media_type(accept)
    assert all(clause.quality == clause.quality for clause in clauses(accept))
    try:
        assert negotiated_media_type(accept, streams=streams, is_list=is_list).media_type
    except ApiError as refusal:
        expect_said(refusal, 406)


@given(texts())
def test_a_path_is_resolved_to_a_resource_or_not_found(path):
    target = request_info_of(path)
    assert target is None or isinstance(target.resource, str)


@given(texts(), st.integers(), st.text(min_size=1, max_size=5))
def test_a_continue_token_is_accepted_or_refused(text, version, start):
    for given_one in (text, encoded(Token(version, start))):
        try:
            assert decoded(given_one).start
        except ApiError as refusal:
            expect_said(refusal, 400)


CRON = st.lists(
    st.lists(st.sampled_from("0123456789*,-/?@LW#") | st.sampled_from(("mon", "JAN", "9" * 20)))
    .map("".join)
    .filter(bool),
    min_size=5,
    max_size=5,
).map(" ".join)


@given(CRON | texts())
def test_a_schedule_has_a_next_time_or_a_problem(text):
    """The controller can use every schedule that validation accepts."""
    if schedule_problem(text):
        return
    try:
        due = read_schedule(text).after(NOW)
    except ScheduleError:
        return
    assert due is None or due > NOW


@given(texts())
def test_a_time_zone_is_valid_or_has_a_problem(text):
    assert isinstance(time_zone_problem(text), str)


@given(texts())
def test_a_usage_is_parsed_or_refused(text):
    with suppress(ValueError):
        assert all(amount >= 0 for amount in parse_usage(text).values())
