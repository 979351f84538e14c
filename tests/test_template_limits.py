"""What a chat template from a stranger may compute."""

from __future__ import annotations

import os
import sys
import traceback
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import date
from threading import Event
from typing import Any

import pytest

import bytepair
from bytepair import errors
from bytepair._internal.sandbox import END_INDEX, INDEX, START, STOP, compiled, render
from bytepair.chat import JinjaTemplate, RenderProcess
from bytepair.chat.rendering import MOST_MARKS, Disguise, TokenNames, unmarked
from bytepair.errors import ConversationError
from messages import told

GROW = "{% set ns = namespace(x=START) %}{% for i in range(60) %}{% set ns.x = STEP %}{% endfor %}"


def growing(start: str, step: str, end: str) -> str:
    return GROW.replace("START", start).replace("STEP", step) + end


NESTED = growing("[1]", "[ns.x, ns.x]", "")

TOO_MUCH = {
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}"
    "{% endfor %}{% endfor %}",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}"
    "{{ m(60) }}",
    "recursion": "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "repetition": "{{ 'a' * 10**9 }}",
    "power": "{{ 10**(10**8) }}",
    "power twice": "{% set x = 10**1000 %}{% set x = x**1000 %}{{ x }}",
    "width": "{{ '%5000000000d' % 1 }}",
    "width as a value": "{{ '%*d' % (5000000000, 1) }}",
    "format": "{{ '{:5000000000}'.format(1) }}",
    "format in a format": "{{ '{:{}}'.format(1, 5000000000) }}",
    "format_map": "{{ '{x:99999999}'.format_map({'x': 1}) }}",
    "center": "{{ 'a'|center(10**9) }}",
    "method center": "{{ 'a'.center(10**9) }}",
    "zfill": "{{ '1'.zfill(10**9) }}",
    "indent": "{{ ('a\n'*1000000)|indent(1000000) }}",
    "tojson": "{{ ([[1]]*1000000)|tojson(indent=99) }}",
    "wordwrap": "{{ ('a'*1000000)|wordwrap(1, true, 'b'*1000000) }}",
    "replace": "{{ ('a'*1000000)|replace('a', 'b'*1000000) }}",
    "method replace": "{{ ('a'*1000000).replace('a', 'b'*1000000) }}",
    "join": "{{ (['a']*1000000)|join('b'*1000000) }}",
    "method join": "{{ ('b'*1000000).join(['a']*1000000) }}",
    "expandtabs": "{{ ('\t'*1000000).expandtabs(1000000) }}",
    "slice": "{{ [1]|slice(10**9)|list }}",
    "batch": "{{ [1]|batch(10**9, 'x')|list }}",
    "round": "{{ 1|round(10**9, 'ceil') }}",
    "doubling": growing("'ab'", "ns.x ~ ns.x", "{{ ns.x|length }}"),
    "doubling by plus": growing("'ab'", "ns.x + ns.x", "{{ ns.x|length }}"),
    "doubling lists": growing("[1]", "ns.x + ns.x", "{{ ns.x|length }}"),
    "doubling blocks": growing("'ab'", "y", "").replace(
        "{% set ns.x", "{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x"
    ),
    "shared lists": NESTED + "{{ ns.x }}",
    "shared lists in tojson": NESTED + "{{ ns.x|tojson }}",
    "shared lists in a format": NESTED + "{{ '%s' % (ns.x,) }}",
    "shared lists joined": NESTED + "{{ ns.x ~ '' }}",
    "deep tuples": "{% set ns = namespace(x=()) %}{% for i in range(99999) %}"
    "{% set ns.x = (ns.x,) %}{% endfor %}{{ {ns.x: 1} }}",
    "output": "{% set x = 'a'*1000000 %}{% for i in range(9999) %}{{ x }}{% endfor %}",
    "work": "{% for i in range(99999) %}{% set x = 'a' * 30000000 %}{% endfor %}",
}

TOO_DEEP = {
    "parentheses": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "conditions": "{% if 1 %}" * 300 + "{% endif %}" * 300,
    "lists": "{{ " + "[" * 300 + "]" * 300 + " }}",
    "loops": "{% for a in [1] %}" * 25 + "{% endfor %}" * 25,
    "sums": "{{ 1" + "+1" * 50_000 + " }}",
    "negations": "{{ " + "not " * 50_000 + "1 }}",
    "length": " " * (1 << 17) + "{{ 1 }}",
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_a_template_that_takes_too_much_memory_ends_its_process() -> None:
    source = "{{ ('a' * 500_000_000)|length }}"
    limited = RenderProcess(memory_bytes=400 << 20, seconds=20)
    with closing(limited) as process, pytest.raises(errors.ConversationError):
        process.ask("render", source, "stranger", {})
    with closing(RenderProcess(seconds=20)) as process:
        assert process.ask("render", source, "stranger", {}) == "500000000"


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_template_that_computes_too_much_ends_its_process(name: str) -> None:
    with closing(RenderProcess(memory_bytes=400 << 20, seconds=0.7)) as process:
        assert process.ask("render", "{{ 1 }}", "plain", {}) == "1"
        with pytest.raises(errors.ConversationError) as caught:
            process.ask("render", TOO_MUCH[name], "stranger", {})
        assert str(caught.value).startswith("the template 'stranger'")
        assert process.ask("render", "{{ 2 }}", "plain", {}) == "2"


@pytest.mark.parametrize("name", TOO_DEEP)
def test_a_template_that_is_too_deep_is_refused_in_the_process(name: str) -> None:
    with closing(RenderProcess(seconds=5)) as process:
        with pytest.raises(errors.ConversationError):
            process.ask("render", TOO_DEEP[name], "stranger", {})
        assert process.ask("render", "{{ x }}", "plain", {"x": "\ud800\u20ac"}) == "\ud800\u20ac"


#: What parses, but takes long or goes deep afterwards.
HARD = TOO_DEEP | {
    "filters": "{{ x" + "|e" * 300 + " }}",
    "calls": "{{ x" + "()" * 400 + " }}",
    "digits": "{{ " + "1" * 100_000 + " }}",
    "attributes": "{{ x" + ".x" * 60_000 + " }}",
}


@pytest.mark.parametrize("name", HARD)
def test_reading_a_template_has_the_limits_of_its_process(name: str) -> None:
    tok = bytepair.train(["hi there"], vocab_size=270)
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "there"}]
    with closing(RenderProcess(seconds=1)) as process:
        template = JinjaTemplate(HARD[name], mask="none", process=process)
        with pytest.raises(errors.ConversationError):
            tok.render_conversation(talk, template=template)
    if name != "filters":  # these take half a minute
        with pytest.raises(errors.ConversationError):
            tok.render_conversation(talk, template=JinjaTemplate(HARD[name], mask="none"))


def test_the_process_gives_what_the_template_gives_here() -> None:
    tok = bytepair.train(["hi there"], vocab_size=270)
    source = "{% for m in messages %}<|{{ m.role }}_start|>{{ m.content }}{% endfor %}"
    talk = [{"role": "user", "content": "hi<|bos|>"}, {"role": "assistant", "content": "there"}]
    here = JinjaTemplate(source, checks="off")
    with closing(RenderProcess()) as process:
        there = JinjaTemplate(source, checks="off", process=process)
        assert here == there
        expected = tok.render_conversation(talk, template=here)
        for _ in range(3):
            assert tok.render_conversation(talk, template=there) == expected
    assert tok.render_conversation(talk, template=there) == expected  # another child
    process.close()


def test_a_process_that_another_thread_closes_gives_no_other_error_of_the_conversation() -> None:
    end = Event()

    def close() -> None:
        while not end.wait(0.02):
            process.close()

    with closing(RenderProcess()) as process, ThreadPoolExecutor(1) as pool:
        closes = pool.submit(close)
        for _ in range(300):
            with suppress(errors.ConversationError):
                process.ask("render", "{{ x }}", "closed", {"x": "x" * 100_000})
        end.set()
        closes.result()
        assert process.ask("render", "{{ 2 }}", "plain", {}) == "2"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_processes_after_a_fork_do_not_mix_their_conversations() -> None:
    with closing(RenderProcess()) as process:
        assert process.ask("render", "{{ x }}", "x", {"x": "before"}) == "before"
        child = os.fork()
        own = f"of {os.getpid()}"
        same = all(process.ask("render", "{{ x }}", "x", {"x": own}) == own for _ in range(100))
        if not child:
            os._exit(not same)
        assert os.waitpid(child, 0)[1] == 0
        assert same


def test_what_json_cannot_hold_is_no_value_for_the_process() -> None:
    with closing(RenderProcess()) as process, told(ConversationError):
        process.ask("render", "{{ x }}", "x", {"x": date(2026, 1, 2)})


def test_errors_of_templates_are_the_same_in_the_process() -> None:
    source = "{{ raise_exception('roles must alternate') }}"
    with closing(RenderProcess()) as process, pytest.raises(errors.ConversationError) as there:
        process.ask("render", source, "strict", {})
    with pytest.raises(errors.ConversationError) as here:
        render(source, "strict", {})
    assert str(here.value) == str(there.value) == "the template 'strict': roles must alternate"


@pytest.mark.parametrize(
    "source",
    [
        "{{ cycler() }}", "{{ 'a text'|truncate(1) }}", "{{ 1e999 }}", "{{ x|unknown }}",
        "{{ x is unknown }}", "{% block a %}{% endblock %}{% block a %}{% endblock %}",
        "{{ 9**9999 }}", "{{ raise_exception('\x1b]0;a\x07') }}", "{{ 'x'.encode('\x1b') }}",
    ],
)  # fmt: skip
def test_whatever_a_template_raises_is_an_error_of_the_conversation(source: str) -> None:
    tok = bytepair.train(["hi there"], vocab_size=270)
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "there"}]
    with closing(RenderProcess()) as process:
        for how in (None, process):
            template = JinjaTemplate(source, mask="none", process=how)
            with pytest.raises(errors.ConversationError) as caught:
                tok.render_conversation(talk, template=template)
            assert "more than" not in str(caught.value)
            assert "\x1b" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("option", ["memory_bytes", "seconds"])
@pytest.mark.parametrize("value", [0, -1, "1", None, 1e30])
def test_limits_are_positive_numbers(option: str, value: Any) -> None:
    with pytest.raises(errors.ArgumentError) as caught:
        RenderProcess(**{option: value})
    assert (caught.value.option, caught.value.value) == (option, value)


@pytest.mark.parametrize("name", TOO_DEEP)
def test_a_template_that_is_too_deep_or_long_is_refused(name: str) -> None:
    with told(errors.ConversationError, "the template"):
        render(TOO_DEEP[name], "stranger", {})


def test_nothing_is_computed_at_compile_time() -> None:
    compiled("{{ 10**(10**8) }}{{ 'a'|center(10**9) }}{{ 'a' * 10**9 }}", "stranger")


def test_what_templates_do_gives_the_same_result() -> None:
    source = (
        "{% set ns = namespace(n=0) %}"
        "{% for m in messages %}{% set ns.n = ns.n + loop.length %}"
        "{{ loop.index }}/{{ loop.last }}:{{ m.role ~ ':' ~ m.content|trim }};{% endfor %}"
        "{{ ns.n }}{% set block %}<{{ messages|length }}>{% endset %}{{ block|upper }}"
        "{{ [1, {'a': 'b'}]|tojson }}"
        "{% for k, v in {'x': 1}.items() if v %}{{ k }}{{ v }}{% endfor %}"
        "{{ '%s-%05d' % ('a', 7) }}{{ 'a,b'.split(',')|join('+') }}{{ '{:>4}'.format('x') }}"
        "{{ [3, 1]|sort|first }}{{ 2 ** 10 }}"
        "{% macro tag(x) %}[{{ x }}{{ caller() if caller else '' }}]{% endmacro %}{{ tag(1) }}"
        "{% call tag(2) %}c{% endcall %}"
        "{{ messages|selectattr('role', 'equalto', 'user')|list|length }}"
    )
    messages = [{"role": "user", "content": " hi "}, {"role": "assistant", "content": "yo"}]
    assert render(source, "usual", {"messages": messages}) == (
        '1/False:user:hi;2/True:assistant:yo;4<2>[1, {"a": "b"}]x1a-00007a+b   x11024[1][2c]1'
    )


def test_long_names_of_special_tokens_take_memory_in_proportion() -> None:
    names = [f"{number}{'a' * 500}" for number in range(200)]
    tracemalloc.start()
    Disguise(TokenNames(names), set(), everywhere=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * len("".join(names))


def test_what_a_template_writes_has_a_limit_that_falls_with_the_number_of_special_tokens() -> None:
    def rendered(special: int, written: int) -> int:
        names = [f"<{number}>" for number in range(special)]
        tok = bytepair.train(["hi"], 257 + special, special_tokens=names)
        template = JinjaTemplate(f"{{{{ '<' * {written} + 'a' * 1000000 }}}}", mask="none")
        return len(tok.render_conversation([{"role": "user", "content": ""}], template=template)[0])

    assert rendered(2000, 10_000) > 10_000
    with pytest.raises(errors.ConversationError) as caught:
        rendered(2000, 100_000)
    assert "100,000 characters" in str(caught.value)


def test_the_limit_holds_for_a_prompt_and_for_all_its_blocks_together() -> None:
    names = [f"<{number}>" for number in range(2000)]
    tok = bytepair.train(["hi"], 2257, special_tokens=names)
    source = (
        "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}"
        "{% for i in range(100) %}{% generation %}{{ '<' * 1000 }}{% endgeneration %}{% endfor %}"
        "{% endif %}"
    )
    with pytest.raises(errors.ConversationError) as caught:
        tok.render_for_completion([{"role": "user", "content": ""}], template=JinjaTemplate(source))
    assert "100,000 characters" in str(caught.value)


def test_the_characters_of_all_special_tokens_are_limited() -> None:
    names = [f"{number}{'a' * 500}" for number in range(270)]
    tok = bytepair.train(["hi"], 257 + len(names), special_tokens=names)
    with pytest.raises(errors.SpecialTokenError) as caught:
        tok.render_conversation([{"role": "user", "content": ""}], template=JinjaTemplate("hi"))
    assert "131,072 are the most" in str(caught.value)


def test_the_number_of_special_tokens_and_of_marks_that_a_template_writes_is_limited() -> None:
    tok = bytepair.train(["hi"], 258, special_tokens=["<s>"])
    template = JinjaTemplate(f"{{{{ '<s>' * {MOST_MARKS + 1} }}}}", mask="none")
    with pytest.raises(errors.ConversationError) as caught:
        tok.render_conversation([{"role": "user", "content": ""}], template=template)
    assert "1,048,576 are possible" in str(caught.value)
    assert len(unmarked((START + STOP) * (MOST_MARKS // 2), has_blocks=True)[2]) == MOST_MARKS // 2
    with pytest.raises(errors.ConversationError):
        unmarked((START + STOP) * MOST_MARKS, has_blocks=True)


def test_marks_of_an_index_that_a_template_writes_itself_are_text() -> None:
    forged = f"{INDEX}{'1' * 5000}{END_INDEX}"
    assert unmarked(forged, has_blocks=True) == (forged, {}, [])


def test_many_messages_are_within_the_limits() -> None:
    source = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
    messages = [{"role": "user", "content": [{"text": "word " * 50}] * 10}] * 5000
    assert len(render(source, "long", {"messages": messages})) == 5000 * 10 * 250
