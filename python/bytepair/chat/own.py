"""A tokenizer in, its own chat templates out, by name.

Files have Jinja templates: one named `default`, and perhaps others such as `tool_use` or `rag`.
nanochat's is also defined as a value, which is faster and renders the parts of a message apart, so
this value takes its place.
"""

from __future__ import annotations

from bytepair import _core
from bytepair.chat.jinja import JinjaTemplate
from bytepair.chat.template import NANOCHAT, Template
from bytepair.errors import ArgumentError
from bytepair.properties import roles


def templates(tokenizer: _core.Tokenizer) -> dict[str, Template | JinjaTemplate]:
    """The chat templates of a tokenizer by name; `default` is the first, if there is one.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hi hi"], vocab_size=266)
        >>> {name: template.name for name, template in templates(tok).items()}
        {'default': 'nanochat'}
    """
    sources = roles.chat_templates(tokenizer)
    return {name: _template(name, source) for name, source in sources.items()}


def named(tokenizer: _core.Tokenizer, name: str | None) -> Template | JinjaTemplate:
    """The chat template with a name; None means the default one, or nanochat's if there is none.

    Raises:
        ArgumentError: if the tokenizer has no template with this name.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hi hi"], 259, special_tokens=["<|bos|>"])
        >>> tok = tok.replace(chat_template={"rag": "{{ messages }}"})
        >>> named(tok, "rag").source
        '{{ messages }}'
    """
    sources = roles.chat_templates(tokenizer)
    if name is None and roles.DEFAULT not in sources:
        if NANOCHAT.names() <= tokenizer.special_tokens.keys():
            return NANOCHAT
        raise ArgumentError(
            "the tokenizer has no chat template of its own",
            option="template",
            hint="pass template=, one of bytepair.chat, such as chat.CHATML, or "
            "chat.JinjaTemplate(source)",
        )
    name = name or roles.DEFAULT
    if name not in sources:
        raise ArgumentError(
            (
                f"template is {name[:40]!r}, but the tokenizer has "
                f"{'the chat templates ' + ', '.join(sources) if sources else 'no chat template'}"
            ),
            hint=(
                "pass the name of one, a template of bytepair.chat, such as chat.CHATML, or "
                "chat.JinjaTemplate(source)"
            ),
        )
    return _template(name, sources[name])


def _template(name: str, source: str) -> Template | JinjaTemplate:
    return NANOCHAT if source == roles.nanochat() else JinjaTemplate(source, name=name)
