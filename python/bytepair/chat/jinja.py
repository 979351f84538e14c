"""Hugging Face chat templates: Jinja, rendered in a sandbox, so that text cannot forge tokens.

A Jinja template writes one string that mixes its own special tokens and the text of the messages.
To distinguish them, the texts are disguised before rendering (`texts`). A disguise could mislead
a template that searches for special tokens in the text. To detect this, the conversation is also
rendered without it: if the results differ, fewer characters are disguised, and if they still
differ, it is an error.

The loss mask comes from `{% generation %}` blocks, or is derived from where messages
begin (`masks`), and is checked (`texts`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from bytepair import _core
from bytepair._internal.checks import check_choice, check_kind
from bytepair.chat import masks, texts
from bytepair.chat.rows import (
    CALL_FIELDS,
    DEFAULT,
    MESSAGE_FIELDS,
    ChatOptions,
    Row,
    reasoning_of,
    text_of,
)
from bytepair.chat.sandbox import (
    END_INDEX,
    INDEX,
    NO_MARKS,
    START,
    STOP,
    RenderProcess,
    has_blocks,
    render,
    usage,
)
from bytepair.chat.segments import BREAK, Items, Segments, structural
from bytepair.chat.texts import Disguise, Rendering, deep
from bytepair.errors import BytepairWarning, ConversationError, warn
from bytepair.properties.metadata import engine_tokens

#: The source of the mask: blocks of the template, renderings of prefixes, or no mask.
MaskSource: TypeAlias = Literal["blocks", "prefixes", "none"]


#: The keys that this package looks for, whatever the template names.
_KEYS: Final = MESSAGE_FIELDS | CALL_FIELDS | {"messages", "tools", "text"}


@dataclass(frozen=True)
class JinjaTemplate:
    """A Hugging Face chat template.

    Conversations are rendered as `transformers` renders them, except that the text of messages
    never becomes a special token. (The role of a message is not disguised, because templates build
    special tokens from it.)

    Attributes:
        source: the template, such as the text of `chat_template.jinja`.
        variables: additional variables for the template, besides `messages` and the other fields of
            the conversation, such as `tools`; and `bos_token` and similar variables if they differ
            from the tokenizer's roles.
        pad: the special token that pads rows.
        name: the name of the template in error messages.
        prompted: the role that `render_for_completion` prompts and that is trained on.
        mask: "blocks" trains on `{% generation %}` blocks; "prefixes" trains on what a message of
            the assistant adds to the prompt before it, and rejects templates that render a prefix
            of a conversation differently from the whole; "none" trains on nothing. None, the
            default, means "blocks" if the template has any, else "prefixes".
        stop: the special tokens that may end a turn of the assistant; None means the tokens with
            the roles eos and end_of_turn in the tokenizer, and () means any special token.
        checks: what happens in training if the template drops content of a message, or if the
            assistant's last turn does not end with a trained stop token: "error", "warn" or "off".
        process: renders the template in a child process with limits on its memory and time, for
            templates of strangers. None renders it here: then it reads no file and runs no code,
            but may take any memory and time.

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
    process: RenderProcess | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_kind("source", self.source, str, "read the file first")
        check_choice("mask", self.mask or "none", ("blocks", "prefixes", "none"))
        check_choice("checks", self.checks, ("error", "warn", "off"))

    def padding(self) -> str | None:
        """The name of the special token that pads rows, or None."""
        variables = self.variables or {}
        return self.pad or variables.get("pad_token") or variables.get("eos_token")

    def writer(self, tokenizer: _core.Tokenizer) -> JinjaWriter:
        """Create the object that converts conversations to segments for one tokenizer."""
        return JinjaWriter(tokenizer, self)


class JinjaWriter:
    """Converts conversations to segments, with a Jinja template and one tokenizer."""

    join = True

    def __init__(self, tokenizer: _core.Tokenizer, template: JinjaTemplate) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.name = template.name
        self.special = structural(tokenizer)
        self._variables: dict[str, Any] = {"tools": None, "documents": None}
        self._variables |= {**engine_tokens(tokenizer), **(template.variables or {})}
        names = sorted(self.special, key=len, reverse=True)
        self._find = re.compile("|".join(map(re.escape, names)) or r"(?!)")
        self._mask = template.mask or ("blocks" if has_blocks(template.source) else "prefixes")
        self.has_mask = self._mask != "none"
        self._stops = texts.stops(tokenizer, template.stop)
        process = template.process
        self._usage = (
            usage(template.source) if process is None else process.usage(template.source, self.name)
        )
        reserved = {"messages", "add_generation_prompt", *engine_tokens(tokenizer)}
        self._fields = {"tools", *self._usage.variables} - reserved
        self.writes_ids_of_calls = "tool_call_id" in self._usage.names

    def reads(self, field: str) -> bool:
        """Whether the template uses a field of rows; that of `tools` is checked in training."""
        return field in self._fields

    def reads_in_message(self, field: str) -> bool:
        """Whether the template uses a field of messages that not every template takes."""
        return self._usage.is_generic or field in self._usage.names

    def trains_on(self, role: str) -> bool:
        """Whether the model may be trained on messages of a role."""
        return role == self.template.prompted or self._mask != "prefixes"

    def joins_parts(self, role: str) -> bool:
        """Whether a list of text parts is read as one text; `rendering` finds out."""
        return False

    def write(self, row: Row, out: Segments, options: ChatOptions = DEFAULT) -> None:
        """Append a conversation."""
        rendering = self.rendering(row.messages, row.fields)
        self.append(self._learned(rendering, row, options), rendering.disguise, out)
        out.ends.append(len(out.items))

    def _learned(self, rendering: Rendering, row: Row, options: ChatOptions) -> str:
        """The rendered string, with marks around what is trained on; what is wrong is reported."""
        if not self.has_mask:
            return rendering.string
        trained_regions = self._regions(rendering, row, options)
        whole = rendering.string
        if trained_regions is not None:
            whole = masks.marked(whole.translate(NO_MARKS), trained_regions)
        whole = _apart(whole)
        if self.template.checks != "off":
            for problem in self._problems(rendering, whole, self._off(row, options)):
                self._report(problem)
        if options.train_fields is None or trained_regions is None:
            return whole
        wide = [region for region in trained_regions if region.start < region.end]
        some = [*masks.limited(rendering, wide, options.train_fields, self._find)]
        some += [region._replace(end=region.start) for region in trained_regions]
        some.sort(key=lambda region: (region.start, region.end))
        return masks.marked(whole.translate(NO_MARKS), some)

    def _last_prompt(self, rendering: Rendering) -> list[str | int | None]:
        """The segments of the prompt of the last turn; none if prefixes are compared anyway."""
        *before, last = rendering.messages
        out = Segments()
        if self._mask == "blocks" and last.get("role") == self.template.prompted:
            with suppress(ConversationError):  # a template need not render a part
                self.append(_apart(rendering.run(before, prompt=True)), rendering.disguise, out)
        return out.items

    def _regions(
        self, rendering: Rendering, row: Row, options: ChatOptions
    ) -> list[masks.Region] | None:
        """What is trained on, by messages; None means all blocks of the template."""
        trained = row.trained(options.train_on, self.template.prompted)
        if self._mask == "prefixes":
            return masks.turns(rendering, self.template.prompted, trained)
        if trained is None and options.train_fields is None:
            return None
        off = [index for index, on in enumerate(trained or ()) if not on]
        return masks.blocks(rendering, off, [i for i, flag in row.flags.items() if flag])

    def prompt(self, row: Row, out: Segments) -> None:
        """Append a conversation and the start of the model's turn."""
        rendering = self.rendering(row.messages, row.fields, prompt=True)
        string = rendering.string
        if self._mask == "prefixes":  # turns of the assistant begin apart, as in training
            own = masks.openings(rendering, self.template.prompted)
            string = masks.marked(string, own)
        start = len(out.trained)
        self.append(_apart(string), rendering.disguise, out)
        self.end_prompt(out, start)

    @staticmethod
    def end_prompt(out: Segments, start: int) -> None:
        """Nothing of a prompt is trained on."""
        out.trained[start:] = bytes(len(out.trained) - start)
        out.ends.append(len(out.items))

    def halves(self, row: Row, count: int, options: ChatOptions) -> tuple[Items, Items]:
        """The segments of the prompt of the first messages, and those of the answer after it.

        Raises:
            ConversationError: if the rendering of both does not begin with that of the prompt.
        """
        rendering = self.rendering(row.messages, row.fields)
        marked = self._learned(rendering, row, options)
        prompt = rendering.run(rendering.messages[:count], prompt=True).translate(NO_MARKS)
        what = "the answer does not continue the prompt"
        hint = "use a template where it does"
        plain = marked.translate(NO_MARKS)
        masks.check_prefix(prompt, plain, what, rendering, hint)
        before, after = Segments(), Segments()
        for part, out in zip(masks.split(marked, len(prompt)), (before, after), strict=True):
            self.append(part, rendering.disguise, out)
        if not self.has_mask:  # an answer as a whole is what the model is to write
            after.trained = bytearray([1] * len(after.items))
        return (before.items, bytes(len(before.items))), (after.items, bytes(after.trained))

    def _off(self, row: Row, options: ChatOptions) -> set[int]:
        """The turns of the assistant that are not trained on."""
        role = self.template.prompted
        trained = row.trained(options.train_on, role) or ()
        return {i for i, on in enumerate(trained) if not on and row.messages[i]["role"] == role}

    def _problems(
        self, rendering: Rendering, marked: str, off: set[int]
    ) -> Iterator[texts.Problem]:
        yield from texts.dropped(rendering, off, self._find)
        out = Segments()
        self.append(marked, rendering.disguise, out)
        prompt, encode = self._last_prompt(rendering), self.tokenizer.encode
        yield from texts.unprompted(prompt, out.items, encode)
        segments = zip(out.items, out.trained, strict=True)
        yield from texts.endless(segments, self._stops, self.special)

    def _report(self, problem: texts.Problem) -> None:
        text, hint = f"the template {self.template.name!r}: {problem.message}", problem.hint
        if self.template.checks != "error":
            warn(BytepairWarning(text, option="checks", hint=hint))
            return
        hint = f"{hint}, or " if hint else ""
        hint += 'pass checks="warn" or "off" to the template'
        raise ConversationError(text, option="checks", value="error", hint=hint)

    def rendering(
        self, messages: Sequence[Any], fields: Mapping[str, Any], *, prompt: bool = False
    ) -> Rendering:
        """Render a conversation with a disguise that does not mislead the template.

        If the template takes no lists of parts, lists of text parts are joined to one text. If it
        does not ask whether the content is none, it would print a missing content as "None".
        """
        if not self._usage.tests_content:
            messages = [{**m, "content": ""} if m["content"] is None else m for m in messages]
        try:
            return self._disguised({**fields, "messages": list(messages)}, prompt)
        except ConversationError:
            texts = [_with_text(message) for message in messages]
            if texts == list(messages):
                raise
        return self._disguised({**fields, "messages": texts}, prompt)

    def _disguised(self, fields: dict[str, Any], prompt: bool) -> Rendering:
        characters = set(json.dumps([fields, self._variables], ensure_ascii=False, default=str))
        characters |= set(self.template.source)
        plain = self._run(fields, prompt)
        for index, message in enumerate(fields["messages"]):
            if isinstance(message.get("content"), list) and str(message["content"]) in plain:
                raise ConversationError(
                    f"the content of message {index} is a list, which the template "
                    f"{self.name!r} does not take"
                )
        for everywhere in (True, False):
            disguise = Disguise(self.special, characters, everywhere=everywhere)
            disguised = deep(fields, disguise, self._usage.names | _KEYS)
            string, starts = _starts(self._run(disguised, prompt, with_indices=True))
            if disguise.take_off(string) == plain:
                return self._rendering(string, starts, disguise, disguised)
        raise ConversationError(
            (
                f"the template {self.template.name!r} searches for special tokens in the text of "
                "messages, but text never contains any"
            ),
            hint="pass this content in the fields that the template has for it",
        )

    def _rendering(
        self, string: str, starts: dict[int, int], disguise: Disguise, fields: dict[str, Any]
    ) -> Rendering:
        def run(messages: list[Any], *, prompt: bool = False, tools: Any = None) -> str:
            changed = {"messages": messages} | ({} if tools is None else {"tools": tools})
            return self._unmarked(self._run({**fields, **changed}, prompt))

        whole, tools = self._unmarked(string), fields.get("tools")
        return Rendering(whole, starts, disguise, fields["messages"], tools, run)

    def _run(self, fields: dict[str, Any], prompt: bool, *, with_indices: bool = False) -> str:
        """Run the template; its result contains marks around blocks."""
        values = {**self._variables, **fields, "messages": list(map(_aliased, fields["messages"]))}
        variables = {**values, "add_generation_prompt": prompt}
        run = render if self.template.process is None else self.template.process.render
        return run(self.template.source, self.template.name, variables, with_indices)

    def _unmarked(self, string: str) -> str:
        """Remove the marks of blocks, unless the mask is derived from them."""
        return string if self._mask == "blocks" else string.translate(NO_MARKS)

    def append(self, string: str, disguise: Disguise, out: Segments) -> None:
        """Split a string at special tokens and at the boundaries of trained parts."""
        trained, before = 0, " "
        for piece in re.split(f"([{START}{STOP}])", string):
            if piece in (START, STOP) and piece:
                is_empty = piece == STOP and before == ""
                trained, before = int(piece == START), piece
                if is_empty and out.items and isinstance(out.items[-1], str):
                    out.items.append(BREAK)
                    out.trained.append(0)
                continue
            before = piece
            end = 0
            for match in self._find.finditer(piece):
                self._text(disguise.take_off(piece[end : match.start()]), trained, out)
                out.items.append(self.special[match.group()])
                out.trained.append(trained)
                end = match.end()
            self._text(disguise.take_off(piece[end:]), trained, out)

    def items(self, string: str, rendering: Rendering) -> list[str | int | None]:
        """The segments of a part of the rendered string."""
        out = Segments()
        self.append(string.translate(NO_MARKS), rendering.disguise, out)
        return out.items

    @staticmethod
    def _text(text: str, trained: int, out: Segments) -> None:
        if text:
            out.items.append(text)
            out.trained.append(trained)


def _apart(string: str) -> str:
    """Put an empty region before each: there the turn begins, and texts are encoded apart."""
    return string.replace(START, START + STOP + START)


def _starts(string: str) -> tuple[str, dict[int, int]]:
    """A string without indices, and where each message begins if the marks are left out, too."""
    starts: dict[int, int] = {}
    place, (first, *others) = 0, string.split(INDEX)
    pieces = [first]
    for other in others:
        place += len(pieces[-1].translate(NO_MARKS))
        index, _, piece = other.partition(END_INDEX)
        starts[int(index)] = place
        pieces.append(piece)
    return "".join(pieces), starts


def _aliased(message: Any) -> Any:
    """A message with its reasoning in all fields that templates use, as in `transformers`."""
    if not isinstance(message, Mapping):
        return message
    reasoning = reasoning_of(message)
    return (
        message
        if reasoning is None
        else {"thinking": reasoning, **message, "reasoning_content": reasoning}
    )


def _with_text(message: Any) -> Any:
    """A message whose content, if it is a list of text parts, is joined to one text."""
    text = text_of(message.get("content"))
    return message if text is None else {**message, "content": text}
