"""Chat templates of Hugging Face: Jinja, rendered in a sandbox, without letting text forge tokens.

A Jinja template writes one string, in which its own special tokens and the text of the messages are
mixed. To tell them apart, a character with which a special token could begin or go on is disguised
in the text of the messages before the template sees it: it is replaced by a character that occurs
nowhere, and put back afterwards. What looks like a special token in the result was then written by
the template.

A disguise might mislead a template that looks for a special token in the text. That is found out by
rendering once without any: if the two differ, fewer characters are disguised, and if they still
differ it is an error.

`{% generation %}` blocks mark what the model is trained on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from bytepair import _core
from bytepair.chat.segments import Conversation, Segments, messages_of
from bytepair.errors import ConversationError
from bytepair.formats.companions import role_tokens

if TYPE_CHECKING:
    import jinja2

#: Private characters of Unicode, free to stand for something.
_PRIVATE = range(0x100000, 0x10FFFE)

#: They surround what is trained on, and are taken out again; in texts they are disguised.
_START, _STOP = "\U0010fffe", "\U0010ffff"


@dataclass(frozen=True)
class JinjaTemplate:
    """A chat template as Hugging Face models have it.

    Conversations are rendered as `transformers` renders them, except that the text of messages
    never becomes a special token. (The role of a message is not disguised, because templates build
    special tokens from it.)

    Attributes:
        source: the template, for instance the text of `chat_template.jinja`.
        variables: what the template sees beside `messages` and the other fields of the
            conversation, for instance `tools`; and `bos_token` and the like, where they are not
            those of the roles that the tokenizer's special tokens have.
        pad: the special token that fills rows.
        name: for messages of errors.

    Example:
        >>> from bytepair.chat import JinjaTemplate
        >>> template = JinjaTemplate(
        ...     "{% for m in messages %}<|{{ m.role }}_start|>{% generation %}{{ m.content }}"
        ...     "{% endgeneration %}<|{{ m.role }}_end|>{% endfor %}"
        ... )
        >>> template.name
        'jinja'
    """

    source: str
    variables: Mapping[str, Any] | None = None
    pad: str | None = None
    name: str = "jinja"
    prompted: str = "assistant"
    strip: bool = False

    def padding(self) -> str | None:
        """Name the special token that fills rows, or None."""
        variables = self.variables or {}
        return self.pad or variables.get("pad_token") or variables.get("eos_token")

    def writer(self, tokenizer: _core.Tokenizer) -> JinjaWriter:
        """What turns conversations into segments for one tokenizer."""
        return JinjaWriter(tokenizer, self)


class JinjaWriter:
    """A Jinja template and the special tokens of one tokenizer."""

    join = True

    def __init__(self, tokenizer: _core.Tokenizer, template: JinjaTemplate) -> None:
        self._template = template
        self._special = tokenizer.special_tokens
        self._roles: dict[str, Any] = dict(role_tokens(tokenizer))
        names = sorted(self._special, key=len, reverse=True)
        self._find = re.compile("|".join(map(re.escape, names)) or r"(?!)")
        self._compiled = _compiled(template.source)

    def write(self, conversation: Conversation, out: Segments) -> None:
        """Append a conversation."""
        self._last, self._start = conversation, (len(out.items), len(out.trained))
        self._append(self._rendered(conversation, prompt=False), out)
        out.ends.append(len(out.items))

    def prime(self, out: Segments) -> None:
        """Render the last conversation again, ending where the model is to go on."""
        items, trained = self._start
        del out.items[items:], out.trained[trained:]
        self._append(self._rendered(self._last, prompt=True), out)
        out.ends[-1] = len(out.items)

    def _rendered(self, conversation: Conversation, *, prompt: bool) -> tuple[str, _Disguise]:
        """The conversation as one string, in which only the template wrote special tokens."""
        messages = messages_of(conversation)
        fields = dict(conversation) if isinstance(conversation, Mapping) else {}
        fields |= {"messages": messages}
        variables = {"tools": None, "documents": None, **self._roles}
        variables |= self._template.variables or {}
        used = set(json.dumps([fields, variables], ensure_ascii=False, default=str))
        used |= set(self._template.source)
        plain = self._run({**variables, **fields}, prompt)
        for everywhere in (True, False):
            disguise = _Disguise(self._special, used, everywhere=everywhere)
            disguised = _deep(fields, disguise.put_on)
            rendered = self._run({**variables, **disguised}, prompt)
            if disguise.take_off(rendered) == plain:
                return rendered, disguise
        raise ConversationError(
            f"the template {self._template.name!r} looks for special tokens in the text of "
            "messages, but text never holds any; pass what they mark in the fields that the "
            "template has for it"
        )

    def _run(self, variables: dict[str, Any], prompt: bool) -> str:
        from bytepair._internal.extras import jinja2

        try:
            return self._compiled.render(**variables, add_generation_prompt=prompt)
        except jinja2.TemplateError as error:
            raise ConversationError(f"the template {self._template.name!r}: {error}") from error

    def _append(self, rendered: tuple[str, _Disguise], out: Segments) -> None:
        """Cut the string at special tokens and at the borders of what is trained on."""
        string, disguise = rendered
        trained = 0
        for piece in re.split(f"([{_START}{_STOP}])", string):
            if piece in (_START, _STOP) and piece:
                trained = int(piece == _START)
                continue
            done = 0
            for found in self._find.finditer(piece):
                self._text(disguise.take_off(piece[done : found.start()]), trained, out)
                out.items.append(self._special[found.group()])
                out.trained.append(trained)
                done = found.end()
            self._text(disguise.take_off(piece[done:]), trained, out)

    @staticmethod
    def _text(text: str, trained: int, out: Segments) -> None:
        if text:
            out.items.append(text)
            out.trained.append(trained)


# ---------------------------------------------------------------------------- disguises


class _Disguise:
    """Replaces characters of special tokens by private ones, and back.

    Those are `everywhere` all with which a special token begins, or else those where one stands, or
    may begin at the end of the text; and the first one if a token may have begun before the text.
    """

    def __init__(self, special: Iterable[str], used: set[str], *, everywhere: bool) -> None:
        self._special, self._everywhere = list(special), everywhere
        characters = sorted({_START, _STOP, *(c for name in self._special for c in name)})
        free = (chr(code) for code in _PRIVATE if chr(code) not in used)
        self._on = dict(zip(characters, free, strict=False))
        self._off = {ord(mask): c for c, mask in self._on.items()}

    def put_on(self, text: str) -> str:
        first = {_START, _STOP, *(name[0] for name in self._special if self._everywhere)}
        places = {i for i, c in enumerate(text) if c in first}
        if not self._everywhere:
            body = text.rstrip()
            places |= {
                i
                for name in self._special
                for i in range(len(body))
                if body.startswith(name, i) or name.startswith(body[i:])
            }
        start = len(text) - len(text.lstrip())
        tails = (name[i:] for name in self._special for i in range(1, len(name)))
        if any(text.startswith(tail, start) for tail in tails):
            places.add(start)
        return "".join(self._on[c] if i in places else c for i, c in enumerate(text))

    def take_off(self, text: str) -> str:
        return text.translate(self._off)


def _deep(value: Any, change: Callable[[str], str], key: object = None) -> Any:
    """Change every text in a value but keys and roles."""
    if isinstance(value, str):
        return value if key == "role" else change(value)
    if isinstance(value, Mapping):
        return {name: _deep(item, change, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_deep(item, change) for item in value]
    return value


# ---------------------------------------------------------------------------- the environment


@lru_cache(maxsize=16)
def _compiled(source: str) -> jinja2.Template:
    """The template in an environment as transformers has it."""
    from bytepair._internal.extras import jinja2

    try:
        template: jinja2.Template = _environment().from_string(source)
    except jinja2.TemplateSyntaxError as error:
        message = f"the chat template is not valid at line {error.lineno}: {error.message}"
        raise ConversationError(message) from error
    return template


def _environment() -> Any:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012 - as jinja2 has it

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            call = self.call_method("_mark")
            return nodes.CallBlock(call, [], [], body).set_lineno(line)

        def _mark(self, caller: Callable[[], str]) -> str:
            return _START + caller() + _STOP

    def raise_exception(message: str) -> NoReturn:
        raise TemplateError(message)

    def to_json(value: Any, indent: int | None = None, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent, **options)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment
