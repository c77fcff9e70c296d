"""AnswerForm: the fields that all answers have.

The form of each kind of answer adds the fields of that kind.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field


def about(description: str) -> Meta:
    """Return the description of a field, for the schema and the documentation."""
    return Meta(description=description)


class NextStepForm(Struct, forbid_unknown_fields=True):
    """A next step: a sentence, and the command that carries out the step."""

    sentence: Annotated[str, about("what to do")]
    options: Annotated[
        str | None, about("options with which to ask the same question again, or `null`")
    ]
    command: Annotated[str | None, about("the command to run, or `null`")]
    outcome: Annotated[
        str | None,
        about("the outcome that the step is about; `null` if it is about the whole answer"),
    ]


class AnswerForm(Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """The fields of every answer; `kind` says which further fields the answer has."""

    api_version: Annotated[
        Literal["fairlead.dev/v1beta1"], about("the version of the fields of all answers")
    ] = field(name="apiVersion")
    source: Annotated[str, about("the dump, scenario or history that the answer is about")]
    verdict: Annotated[str, about("the answer, in one or a few sentences")]
    findings: Annotated[list[str], about("further sentences; important facts come first")]
    notes: Annotated[list[str], about("sentences about assumptions, and about what is left out")]
