"""Chat templates of Hugging Face: Jinja, rendered in a sandbox, without letting text forge tokens.

A Jinja template writes one string, in which its own special tokens and the text of the messages are
mixed. To tell them apart, the texts are disguised before the template sees them (`disguise`). A
disguise might mislead a template that looks for a special token in the text. That is found out by
rendering once without any: if the two differ, fewer characters are disguised, and if they still
differ it is an error.

What the model is trained on stands in `{% generation %}` blocks, or is derived from renderings of
the first messages alone (`prefixes`), and is checked (`checks`).
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from bytepair import _core
from bytepair.chat import checks, prefixes
from bytepair.chat.disguise import Disguise, Rendering, deep
from bytepair.chat.environment import NO_MARKS, START, STOP, compiled, has_blocks, render
from bytepair.chat.segments import Conversation, Segments, messages_of
from bytepair.errors import ConversationError
from bytepair.formats.companions import role_tokens

#: Where the mask comes from: blocks of the template, renderings of prefixes, or there is none.
MaskSource: TypeAlias = Literal["blocks", "prefixes", "none"]


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
        prompted: the role whose turn it is in `render_for_completion`, and that is trained.
        mask: "blocks" trains on what stands in `{% generation %}` blocks; "prefixes" trains on what
            a message of the assistant adds to the prompt before it, and refuses templates that
            render a prefix of a conversation in another way than the whole; "none" trains on
            nothing. None, the default, means blocks if the template has any, else prefixes.
        stop: the special tokens that may end a turn of the assistant; None means those that have
            the role eos or end_of_turn in the tokenizer, and () any.
        checks: what happens in training if the template leaves out what a message says, or if the
            assistant's last turn does not end with a stop token that is trained on: "error",
            "warn", or "off".

    Example:
        >>> from bytepair.chat import JinjaTemplate
        >>> template = JinjaTemplate(
        ...     "{% for m in messages %}<|{{ m.role }}_start|>{{ m.content }}<|{{ m.role }}_end|>"
        ...     "{% endfor %}{% if add_generation_prompt %}<|assistant_start|>{% endif %}"
        ... )
        >>> import bytepair
        >>> tok = bytepair.train(["hi yo"], vocab_size=265)
        >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
        >>> tok.render_conversation(talk, template=template)[1]
        [0, 0, 0, 0, 0, 1, 1, 1]
    """

    source: str
    variables: Mapping[str, Any] | None = None
    pad: str | None = None
    name: str = "jinja"
    prompted: str = "assistant"
    strip: bool = False
    mask: MaskSource | None = None
    stop: tuple[str, ...] | None = None
    checks: Literal["error", "warn", "off"] = "error"

    def __post_init__(self) -> None:
        if self.mask not in ("blocks", "prefixes", "none", None):
            raise ValueError(f'mask is {self.mask!r}; it must be "blocks", "prefixes" or "none"')
        if self.checks not in ("error", "warn", "off"):
            raise ValueError(f'checks is {self.checks!r}; it must be "error", "warn" or "off"')

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
        self.tokenizer = tokenizer
        self.template = template
        self.special = tokenizer.special_tokens
        self._variables: dict[str, Any] = {"tools": None, "documents": None}
        self._variables |= {**role_tokens(tokenizer), **(template.variables or {})}
        names = sorted(self.special, key=len, reverse=True)
        self._find = re.compile("|".join(map(re.escape, names)) or r"(?!)")
        self._mask = template.mask or ("blocks" if has_blocks(template.source) else "prefixes")
        self._stops = checks.stops(tokenizer, template.stop)
        compiled(template.source)

    def write(self, conversation: Conversation, out: Segments) -> None:
        """Append a conversation."""
        rendering = self.rendering(conversation)
        string, start = rendering.string, len(out.items)
        if self._mask == "prefixes":
            string = prefixes.marked(rendering, self.template.prompted)
        self.append(string, rendering.disguise, out)
        out.ends.append(len(out.items))
        if self._mask != "none" and self.template.checks != "off":
            for problem in self._problems(rendering, out, start):
                self._report(problem)

    def prompt(self, conversation: Conversation, out: Segments) -> None:
        """Append a conversation and what the model goes on from."""
        rendering = self.rendering(conversation, prompt=True)
        self.append(rendering.string.translate(NO_MARKS), rendering.disguise, out)
        out.ends.append(len(out.items))

    def _problems(self, rendering: Rendering, out: Segments, start: int) -> Iterator[str]:
        yield from checks.dropped(rendering)
        segments = zip(out.items[start:], out.trained[start:], strict=True)
        yield from checks.endless(segments, self._stops, self.special)

    def _report(self, problem: str) -> None:
        message = f"the template {self.template.name!r}: {problem}"
        if self.template.checks == "error":
            raise ConversationError(f'{message}; or pass checks="warn" or "off" to the template')
        warnings.warn(message, stacklevel=4)

    def rendering(self, conversation: Conversation, *, prompt: bool = False) -> Rendering:
        """Render a conversation in a disguise that does not mislead the template."""
        messages = messages_of(conversation)
        fields = dict(conversation) if isinstance(conversation, Mapping) else {}
        fields |= {"messages": messages}
        used = set(json.dumps([fields, self._variables], ensure_ascii=False, default=str))
        used |= set(self.template.source)
        plain = self._run(fields, prompt)
        for everywhere in (True, False):
            disguise = Disguise(self.special, used, everywhere=everywhere)
            disguised = deep(fields, disguise.put_on)
            string = self._run(disguised, prompt)
            if disguise.take_off(string) == plain:
                return self._rendering(string, disguise, disguised)
        raise ConversationError(
            f"the template {self.template.name!r} looks for special tokens in the text of "
            "messages, but text never holds any; pass what they mark in the fields that the "
            "template has for it"
        )

    def _rendering(self, string: str, disguise: Disguise, fields: dict[str, Any]) -> Rendering:
        def run(messages: list[Any], *, prompt: bool = False, tools: Any = None) -> str:
            changed = {"messages": messages} | ({} if tools is None else {"tools": tools})
            return self._unmarked(self._run({**fields, **changed}, prompt))

        return Rendering(
            self._unmarked(string), disguise, fields["messages"], fields.get("tools"), run
        )

    def _run(self, fields: dict[str, Any], prompt: bool) -> str:
        """What the template writes, with marks of its blocks."""
        given = {**self._variables, **fields, "messages": list(map(_aliased, fields["messages"]))}
        variables = {**given, "add_generation_prompt": prompt}
        return render(self.template.source, self.template.name, variables)

    def _unmarked(self, string: str) -> str:
        """The string, with marks of blocks only if the mask comes from them."""
        return string if self._mask == "blocks" else string.translate(NO_MARKS)

    def append(self, string: str, disguise: Disguise, out: Segments) -> None:
        """Cut a string at special tokens and at the borders of what is trained on."""
        trained = 0
        for piece in re.split(f"([{START}{STOP}])", string):
            if piece in (START, STOP) and piece:
                trained = int(piece == START)
                continue
            done = 0
            for found in self._find.finditer(piece):
                self._text(disguise.take_off(piece[done : found.start()]), trained, out)
                out.items.append(self.special[found.group()])
                out.trained.append(trained)
                done = found.end()
            self._text(disguise.take_off(piece[done:]), trained, out)

    def items(self, string: str, rendering: Rendering) -> list[str | int | None]:
        """The segments of a part of what was rendered."""
        out = Segments()
        self.append(string.translate(NO_MARKS), rendering.disguise, out)
        return out.items

    @staticmethod
    def _text(text: str, trained: int, out: Segments) -> None:
        if text:
            out.items.append(text)
            out.trained.append(trained)


def _aliased(message: Any) -> Any:
    """A message with its reasoning under every name that templates read, as in `transformers`."""
    if not isinstance(message, Mapping):
        return message
    said = next((message[name] for name in checks.REASONING if message.get(name) is not None), None)
    return message if said is None else {"thinking": said, **message, "reasoning_content": said}
