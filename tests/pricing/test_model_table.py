"""The bundled table is sound, and a model is found under the names workers give it."""

import csv
import re

import pytest

from hordechat.model_reference import table
from hordechat.model_reference.facts import ModelFacts
from hordechat.model_reference.table import Table
from tests.pricing.models import B8, B13, B70

LISTED = Table(
    {
        "Foo": B8,
        "A": B8,
        "maker/Llama-3-8B": B8,
        "maker/Llama-3": B70,
        "maker/Tuned-70b-16bit": B70,
        "maker/Tuned-70b": B8,
        "maker/Chat-v1.5": B13,
    }
)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        # as listed, and under both backends
        ("maker/Llama-3-8B", B8),
        ("aphrodite/maker/Llama-3-8B", B8),
        ("koboldcpp/Llama-3-8B", B8),
        ("koboldcpp/Foo", B8),
        ("aphrodite/Foo", B8),
        # not under any other name
        ("Llama-3-8B", None),
        ("koboldcpp/maker/Llama-3-8B", None),
        ("tabbyAPI/maker/Llama-3-8B", None),
        ("maker/llama-3-8b", None),
        ("maker/", None),
        ("", None),
        # one owner's suffix
        ("maker/Llama-3-8B::someone#12", B8),
        ("koboldcpp/Llama-3-8B-Q4_K_M::some one:else#12", B8),
        ("maker/Llama-3-8B::someone#1::another#2", None),
        ("maker/Llama-3-8B::someone", None),
        ("maker/Llama-3-8B::someone#x", None),
        ("maker/Llama-3-8B::#12", None),
        # quantisations that other hordes find too
        ("Foo-IQ3_XS", B8),
        ("Foo.i1-Q6_K", B8),
        # those they cut too far or not at all
        ("maker/Llama-3-8B-Q4_K_M", B8),
        ("maker/Llama-3-8B.Q4_K_M", B8),
        ("A-Q4", B8),
        # the ways there are to write one
        ("Foo-Q8_0", B8),
        ("Foo.q5_k_s", B8),
        ("Foo_Q4_0_4_4", B8),
        ("Foo,Q2_K", B8),
        ("Foo-i1-IQ4_NL", B8),
        ("Foo-UD-Q4_K_XL", B8),
        ("Foo-GGUF", B8),
        ("Foo.Q4_K_M.gguf", B8),
        ("Foo-i1-GGUF", B8),
        ("Foo-AWQ", B8),
        ("Foo-GPTQ", B8),
        ("Foo-GPTQ-Int4", B8),
        ("Foo-GPTQ-4bit-128g", B8),
        ("Foo-4bit", B8),
        ("Foo-8-bits", B8),
        ("Foo-exl2", B8),
        ("Foo-6.0bpw-h6-exl2", B8),
        ("Foo-FP8-Dynamic", B8),
        ("Foo-fp16", B8),
        ("Foo.bf16", B8),
        ("Foo-NVFP4", B8),
        ("Foo-MXFP4", B8),
        ("Foo-quantized.w4a16", B8),
        # a listed name goes first, also on the way
        ("maker/Tuned-70b-16bit", B70),
        ("maker/Tuned-70b-16bit-GGUF", B70),
        ("maker/Tuned-70b-AWQ", B8),
        # what only looks like one
        ("maker/Chat-v1.5", B13),
        ("Foo-Q", None),
        ("Foo-Quick", None),
        ("Foo-Q4-Instruct", None),
        ("FooQ4", None),
        ("Foo-8B", None),
        ("Foo-v4", None),
        ("Foo-Q4\n", None),
        ("-Q4", None),
        # bounds
        ("Foo" + "-Q4" * 6, B8),
        ("Foo" + "-Q4" * 7, None),
        ("Foo" + "-Q4" * 80, None),
        ("Foo-Q4_" + "K" * 248, B8),
        ("Foo-Q4_" + "K" * 249, None),
    ],
)
def test_finds_a_model_by_a_workers_name_for_it(name: str, facts: ModelFacts | None) -> None:
    assert LISTED.find(name) == facts


@pytest.mark.parametrize(
    ("name", "listed_name"),
    [
        ("maker/Llama-3-8B", "maker/Llama-3-8B"),
        ("aphrodite/maker/Llama-3-8B", "maker/Llama-3-8B"),
        ("koboldcpp/Llama-3-8B", "maker/Llama-3-8B"),
        ("koboldcpp/Llama-3-8B-Q4_K_M::someone#12", "maker/Llama-3-8B"),
        ("maker/Tuned-70b-16bit-GGUF", "maker/Tuned-70b-16bit"),
        ("Foo-Q4-Instruct", None),
        ("Foo-Q4_" + "K" * 249, None),
    ],
)
def test_all_names_of_a_model_lead_to_the_one_it_is_listed_under(name: str, listed_name: str | None) -> None:
    assert LISTED.find_listed_name(name) == listed_name


def test_a_name_listed_itself_goes_before_one_made_for_a_backend() -> None:
    models = {"koboldcpp/Foo": B70, "aphrodite/maker/Foo": B13, "maker/Foo": B8}

    both_orders = [Table(models), Table(dict(reversed(models.items())))]

    for made in both_orders:
        assert [made.find(name) for name in models] == [B70, B13, B8]
        assert [made.find_listed_name(name) for name in models] == list(models)
        assert len(made) == 3


def rows() -> list[tuple[str, int]]:
    with table.BUNDLED.open(encoding="utf-8", newline="") as file:
        return [(row["name"], int(row["parameters"])) for row in csv.DictReader(file)]


def test_the_bundled_table_lists_hundreds_of_models_once_and_in_order() -> None:
    names = [name for name, _ in rows()]

    assert len(names) >= 250
    assert names == sorted(set(names), key=lambda name: (name.lower(), name))


def test_every_bundled_name_is_an_organisation_and_a_model() -> None:
    odd = [name for name, _ in rows() if not re.fullmatch(r"[\w.-]+/[\w.-]+", name, re.ASCII)]

    assert odd == []


ACTIVE_PARAMETERS_IN_NAME = ("Llama-4-", "OLMoE-")
"""Mixtures whose names give the parameters of a token's experts, not of all."""


def test_every_bundled_size_is_near_the_size_its_name_gives() -> None:
    odd = []
    for name, parameters in rows():
        size = re.search(r"[-_](\d+(?:[._]\d+)?)([BbMm])(?![a-zA-Z\d])", name)
        if size is not None and not any(mark in name for mark in ACTIVE_PARAMETERS_IN_NAME):
            stated = float(size[1].replace("_", ".")) * (1e9 if size[2] in "Bb" else 1e6)
            # Makers leave embeddings out, and round small models down.
            if not 0.79 <= parameters / stated <= (1.23 if stated > 3e9 else 1.7):
                odd.append((name, parameters))

    assert odd == []


def test_every_bundled_model_is_found_under_its_three_names() -> None:
    bundled = table.bundled()

    for name, parameters in rows():
        facts = ModelFacts(parameters=parameters)
        for spelling in (name, f"aphrodite/{name}", f"koboldcpp/{name.partition('/')[2]}"):
            assert bundled.find(spelling) == facts, spelling


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("elinas/chronos-70b-v2", 68.98),
        ("koboldcpp/LLaMA2-13B-Tiefighter.Q4_K_M", 13.02),
        ("aphrodite/meta-llama/Llama-3.1-8B-Instruct", 8.03),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46.7),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", 30.53),
        ("upstage/SOLAR-0-70b-16bit", 68.98),
        ("openai/gpt-oss-120b", 116.83),
    ],
)
def test_knows_well_known_models(name: str, billions: float) -> None:
    assert table.bundled().find(name) == ModelFacts(parameters=round(billions * 1_000_000_000))
