"""Chat templates in the shapes of published ones, for tests that need no package with templates."""

from __future__ import annotations

from typing import Final

_TURN = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
_PROMPT = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
_CALLS = (
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
)
_ANSWER = f"{{{{ m.content or '' }}}}{_CALLS}<|im_end|>\n"
_TOOLS = (
    "{% if tools %}<|im_start|>system\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}"
    "<|im_end|>\n{% endif %}"
)


def _loop(body: str, messages: str = "messages") -> str:
    return f"{{% for m in {messages} %}}{body}{{% endfor %}}"


def _frames(user: str, answer: str) -> str:
    """Messages of the user, and those of others, have a frame of their own."""
    return _loop(f"{{% if m.role == 'assistant' %}}{answer}{{% else %}}{user}{{% endif %}}")


#: The source of each template by what is special about it.
MADE: Final = {
    "turns": _loop(_TURN) + _PROMPT,
    "sums": _loop("{{ '<|im_start|>' + m['role'] + '\n' + (m.content or '') + '<|im_end|>' }}")
    + _PROMPT,
    "trimmed": _loop("<|start|>{{ m.role }}<|end|>\n\n{{ m.content | trim }}<|eot|>")
    + "{% if add_generation_prompt %}<|start|>assistant<|end|>\n\n{% endif %}",
    "bos": "{{ bos_token }}" + _loop(_TURN) + _PROMPT,
    "instructions": "{{ bos_token }}"
    + _frames("[INST] {{ m.content }} [/INST]", " {{ m.content or '' }}{{ eos_token }}"),
    "other role": _loop(
        "{% set role = 'model' if m.role == 'assistant' else m.role %}"
        "<start_of_turn>{{ role }}\n{{ m.content }}<end_of_turn>\n"
    )
    + "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
    "system first": "{% if messages[0].role == 'system' %}{{ messages[0].content }}\n{% endif %}"
    + _loop("{% if m.role != 'system' %}" + _TURN + "{% endif %}")
    + _PROMPT,
    "rest": "{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}"
    "{{ messages[0].content }}{% else %}{% set rest = messages %}{% endif %}"
    + _loop(_TURN, "rest")
    + _PROMPT,
    "tools": _TOOLS + _frames(_TURN, "<|im_start|>assistant\n" + _ANSWER) + _PROMPT,
    "blocks": _TOOLS
    + _frames(_TURN, "<|im_start|>assistant\n{% generation %}" + _ANSWER + "{% endgeneration %}")
    + _PROMPT,
    "reasoning": _frames(
        _TURN,
        "<|im_start|>assistant\n<think>\n{{ m.reasoning_content or '' }}\n</think>\n\n" + _ANSWER,
    )
    + _PROMPT,
    "last reasoning": _frames(
        _TURN,
        "<|im_start|>assistant\n{% if loop.last %}<think>\n\n</think>\n\n{% endif %}" + _ANSWER,
    )
    + _PROMPT,
    "split reasoning": _frames(
        _TURN,
        "<|im_start|>assistant\n{% set said = m.content or '' %}{% if '</think>' in said %}"
        "{% set said = said.split('</think>')[-1] %}{% endif %}{{ said }}" + _CALLS + "<|im_end|>",
    )
    + _PROMPT,
    "end of all": _frames("<|user|>{{ m.content }}<|end|>\n", "<|assistant|>{{ m.content }}<|end|>")
    + "{% if add_generation_prompt %}<|assistant|>{% else %}{{ eos_token }}{% endif %}",
    "results": _loop(
        "{% if m.role == 'tool' %}{% if loop.previtem.role != 'tool' %}<|im_start|>user\n"
        "{% endif %}<tool_response>{{ m.content }}</tool_response>"
        "{% if loop.last or loop.nextitem.role != 'tool' %}<|im_end|>\n{% endif %}"
        "{% else %}<|im_start|>{{ m.role }}\n" + _ANSWER + "{% endif %}"
    )
    + _PROMPT,
    "arguments": _frames(
        _TURN,
        "<|im_start|>assistant\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>"
        "<function={{ c.function.name }}>{% for k, v in c.function.arguments.items() %}"
        "<parameter={{ k }}>{{ v if v is string else v | tojson }}</parameter>{% endfor %}"
        "</function></tool_call>{% endfor %}<|im_end|>\n",
    )
    + _PROMPT,
    "schemas": "{% for t in tools or [] %}{{ t.function.name }}: {{ t.function.description }}"
    "{% for k, p in t.function.parameters.properties.items() %} {{ k }}: {{ p.type | upper }}"
    "{% endfor %}<|tool|>{% endfor %}" + _loop(_TURN) + _PROMPT,
    "macros": "{% macro text(value) %}{% if value is string %}{{ value }}{% else %}"
    "{% for p in value or [] %}{{ p.text }}{% endfor %}{% endif %}{% endmacro %}"
    + _loop("<|im_start|>{{ m.role }}\n{{ text(m.content) }}" + _CALLS + "<|im_end|>\n")
    + _PROMPT,
    "captured": _loop(
        "{% set said %}{{ m.role }}: {{ m.content }}{% endset %}{{ said | trim }}<|end|>\n"
    )
    + "{% if add_generation_prompt %}assistant:{% endif %}",
    "numbers": "{% set ns = namespace(turns=0) %}{% for i in range(messages | length) %}"
    "{% set m = messages[i] %}{% set ns.turns = ns.turns + 1 %}" + _TURN + "{% endfor %}" + _PROMPT,
    "look ahead": "{% set ns = namespace(last=-1) %}{% for m in messages %}"
    "{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    + _frames(
        _TURN,
        "<|im_start|>assistant\n{% if loop.index0 > ns.last and m.reasoning_content %}"
        "<think>{{ m.reasoning_content }}</think>{% endif %}" + _ANSWER,
    )
    + _PROMPT,
}
