"""Renders Hugging Face's Jinja templates in a sandbox, so that text cannot forge tokens.

A Jinja template writes one string that mixes its own special tokens and the text of the messages.
To distinguish them, the texts are disguised before rendering. A disguise could mislead a template
that searches for special tokens in the text, so the conversation is also rendered without it: if
the results differ, fewer characters are disguised, and if they still differ, it is an error.

The loss mask comes from `{% generation %}` blocks, or is derived from where messages begin
(`rendering`). Three mistakes that would silently harm training are looked for: the template drops
content of a message; the end of the assistant's turn is not trained on, or is no stop token, so
that the model never stops; or the last turn does not continue its prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Final, Literal, NoReturn, TypeAlias

from bytepair import _core
from bytepair._internal.checks import check_choice, check_kind
from bytepair._internal.sandbox import RenderProcess, has_blocks, render, usage
from bytepair.chat.rendering import (
    Disguise,
    MessageText,
    Region,
    Rendering,
    TokenNames,
    unmarked,
    without_indices,
)
from bytepair.chat.rows import (
    CALL_FIELDS,
    DEFAULT,
    MESSAGE_FIELDS,
    REASONING,
    ChatOptions,
    Row,
    reasoning_of,
    text_of,
)
from bytepair.chat.segments import BREAK, Segments, Writer, encode_items, structural
from bytepair.chat.template import ASSISTANT
from bytepair.errors import ConversationError, SpecialTokenError
from bytepair.properties import roles
from bytepair.properties.metadata import engine_tokens

#: The source of the mask: blocks of the template, renderings of prefixes, or no mask.
MaskSource: TypeAlias = Literal["blocks", "prefixes", "none"]


#: White space in Unicode, and the sides of an added token that may strip it.
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_SIDES: Final = ("rstrip", "lstrip")

#: Where a template tests whether the content of a message is none.
_TESTS_CONTENT: Final = re.compile(r"content\b['\"\])]*\s+is\s+(not\s+)?none\b")

#: The keys that this package looks for, whatever the template names.
_KEYS: Final = MESSAGE_FIELDS | CALL_FIELDS | {"messages", "tools", "text"}

#: Disguises, the safest first: everywhere or not, of keys or not, with marks or without.
_DISGUISES: Final = (
    (True, True, True), (True, True, False), (False, True, True), (False, True, False),
    (False, False, False),
)  # fmt: skip


@dataclass(frozen=True)
class JinjaTemplate:
    """A Hugging Face chat template.

    Conversations are rendered as `transformers` renders them, except that the text of messages
    never becomes a special token. (The role of a message is not disguised, because templates build
    special tokens from it.) Special tokens that strip the white space beside them, as those of
    Phi-3 do, strip it here, too.

    Attributes:
        source: the template, such as the text of `chat_template.jinja`.
        variables: additional variables for the template, besides `messages` and the other fields of
            the conversation, such as `tools`; and `bos_token` and similar variables if they differ
            from the tokenizer's roles.
        name: the name of the template in error messages.
        mask: "blocks" trains on `{% generation %}` blocks; "prefixes" trains on what a message of
            the assistant adds to the prompt before it, and rejects templates that render a prefix
            of a conversation differently from the whole; "none" trains on nothing. None, the
            default, means "blocks" if the template has any, else "prefixes".
        stop: the special tokens that may end a turn of the assistant; None means the tokens with
            the roles eos and end_of_turn in the tokenizer, and () means any special token.
        checks: what happens in training if the template drops content of a message, or if the
            assistant's last turn does not end with a trained stop token: "error" or "off".
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
    name: str = "jinja"
    mask: MaskSource | None = None
    stop: tuple[str, ...] | None = None
    checks: Literal["error", "off"] = "error"
    process: RenderProcess | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_kind("source", self.source, str, "read the file first")
        check_choice("mask", self.mask or "none", ("blocks", "prefixes", "none"))
        check_choice("checks", self.checks, ("error", "off"))

    def padding(self) -> str | None:
        """The name of the special token that pads rows, or None."""
        variables = self.variables or {}
        return variables.get("pad_token") or variables.get("eos_token")


#: What looks for parts of the names of special tokens takes the square of their lengths.
_MOST_NAME_CHARS: Final = 512
#: They are searched for each text.
_MOST_CHARS_OF_ALL: Final = 1 << 17
#: The search for special tokens tries all of them at each character with which one begins; and a
#: token that it finds takes as much time and memory as so many.
_MOST_TRIED: Final = 1 << 27
_LEAST_TRIED: Final = 1 << 7
#: The roles whose messages are checked for contents that a template does not take.
_MOST_ROLES: Final = 16


class JinjaWriter(Writer):
    """Converts conversations to segments, with a Jinja template and one tokenizer."""

    def __init__(self, tokenizer: _core.Tokenizer, template: JinjaTemplate) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.name = template.name
        self.special = structural(tokenizer)
        engine = engine_tokens(tokenizer)
        self._variables = {"tools": None, "documents": None, **engine, **(template.variables or {})}
        longest = sorted(self.special, key=len, reverse=True)
        if longest and len(longest[0]) > _MOST_NAME_CHARS:
            raise SpecialTokenError(
                f"a special token has {len(longest[0]):,} characters; under a template of Jinja, "
                f"{_MOST_NAME_CHARS} are the most"
            )
        if (size := sum(map(len, longest))) > _MOST_CHARS_OF_ALL:
            raise SpecialTokenError(
                f"the special tokens have {size:,} characters together; under a template of Jinja, "
                f"{_MOST_CHARS_OF_ALL:,} are the most"
            )
        self._find = re.compile(f"({'|'.join(map(re.escape, longest)) or '(?!)'})")
        self._mask = template.mask or ("blocks" if has_blocks(template.source) else "prefixes")
        self.has_mask = self._mask != "none"
        self._checks = self.has_mask and template.checks != "off"
        self._strips = [one for one in _core.added_tokens(tokenizer) if one.lstrip or one.rstrip]
        self._stops = _stops(tokenizer, self.special, template.stop)
        variables, names = self._in_sandbox(usage)
        reserved = {"messages", "add_generation_prompt", *engine}
        self.fields = {"tools", *variables} - reserved
        self.message_fields = frozenset(names)
        self._token_names = TokenNames(self.special, self.message_fields | _KEYS)
        self.writes_ids_of_calls = "tool_call_id" in names
        self.thinks = not self.message_fields.isdisjoint(REASONING)

    def trains_on(self, role: str) -> bool:
        """Whether the model may be trained on messages of a role."""
        return role == ASSISTANT or self._mask != "prefixes"

    # ------------------------------------------------------------------ conversations to segments

    def write(self, row: Row, out: Segments, options: ChatOptions = DEFAULT) -> None:
        """Append a conversation."""
        rendering = self.rendering(row.messages, row.fields, mark=self._checks)
        compares = self._mask == "blocks"  # else prefixes are compared
        self.append(rendering, self._learned(rendering, row, options, compares), out)
        out.ends.append(len(out.items))

    def write_answer(self, row: Row, count: int, out: Segments, options: ChatOptions) -> None:
        """Append what a conversation adds to the prompt of its first `count` messages."""
        rendering = self.rendering(row.messages, row.fields, mark=self._checks)
        prompt = rendering.run(rendering.messages[:count], prompt=True).string
        rendering.check_prefix(
            prompt, rendering.string, "the answer does not continue the prompt",
            "use a template where it does",
        )  # fmt: skip
        learned, start = self._learned(rendering, row, options, compares=False), len(prompt)
        regions = [one._replace(start=max(one.start, start)) for one in learned if one.end > start]
        self.append(rendering, regions, out, start)
        out.ends.append(len(out.items))

    def prompt(self, row: Row, out: Segments) -> None:
        """Append a conversation and the start of the model's turn; nothing is trained on."""
        rendering = self.rendering(row.messages, row.fields, prompt=True)
        regions = rendering.blocks
        if self._mask == "prefixes":
            regions = rendering.turns([False] * len(row.messages))
        starts = [region._replace(end=region.start) for region in regions]
        self.append(rendering, starts, out)  # turns begin apart, as in training
        out.ends.append(len(out.items))

    def append(
        self, rendering: Rendering, regions: Sequence[Region], out: Segments, start: int = 0
    ) -> None:
        """Append a rendered string from a position on, divided at special tokens.

        Texts in regions are trained on. An empty region divides a text: its two parts are encoded
        apart, as if a prompt ended there.
        """
        string, first = rendering.string, len(out.items)
        for begin, end, _ in regions:
            self._append(string[start:begin], 0, rendering.disguise, out)
            if begin == end and out.items and isinstance(out.items[-1], str):
                out.items.append(BREAK)
                out.trained.append(0)
            self._append(string[begin:end], 1, rendering.disguise, out)
            start = end
        self._append(string[start:], 0, rendering.disguise, out)
        if self._strips:
            self._strip(out, first)

    def _append(self, string: str, trained: int, disguise: Disguise, out: Segments) -> None:
        before = len(out.items)
        for number, part in enumerate(self._find.split(string)):
            if number % 2:
                out.items.append(self.special[part])
            elif part:
                out.items.append(disguise.take_off(part))
        out.trained += bytes([trained]) * (len(out.items) - before)

    def _check_written(self, string: str) -> None:
        """Check how often the search for special tokens would begin in a rendered string."""
        tried, begun = max(len(self.special), _LEAST_TRIED), len(string)
        if tried * begun > _MOST_TRIED:
            begun -= len(self._token_names.begins.sub("", string))
        if tried * begun > _MOST_TRIED:
            raise ConversationError(
                f"the template {self.name!r} writes {begun:,} characters with which special tokens "
                f"begin; with {len(self.special):,} tokens, {_MOST_TRIED // tried:,} are possible"
            )

    def _strip(self, out: Segments, first: int) -> None:
        """Strip white space beside the special tokens that strip it."""
        after, before = ({one.id for one in self._strips if getattr(one, side)} for side in _SIDES)
        items = list(_stripped(out.items[first:], after, str.lstrip))
        items = list(_stripped(reversed(items), before, str.rstrip))[::-1]
        out.trained[first:] = bytes(compress(out.trained[first:], [it != "" for it in items]))
        out.items[first:] = [item for item in items if item != ""]

    # ------------------------------------------------------------------ what is trained on

    def _learned(
        self, rendering: Rendering, row: Row, options: ChatOptions, compares: bool
    ) -> list[Region]:
        """What is trained on; what is wrong with the rendered conversation is reported.

        With `compares`, this includes a last turn that does not continue its prompt.
        """
        if not self.has_mask:
            return []
        trained = row.trained(options.train_on)
        off = {index for index, on in enumerate(trained or ()) if not on}
        if self._mask == "prefixes":
            regions = rendering.turns(trained or [True] * len(row.messages))
        elif trained is None:
            regions = rendering.blocks
        else:
            regions = rendering.blocks_of(off, [i for i, flag in row.flags.items() if flag])
        if self._checks:
            # Turns that are not trained on may lose text, as earlier reasoning does.
            lossy = {index for index in off if row.messages[index]["role"] == ASSISTANT}
            self._check_texts(rendering, lossy)
            self._check_ids(rendering, regions, compares)
        return _apart(regions)

    def _refuse(self, problem: str, hint: str) -> NoReturn:
        raise ConversationError(
            f"the template {self.name!r}: {problem}",
            option="checks",
            value="error",
            hint=f'{hint}, or pass checks="off" to the template',
        )

    def _check_texts(self, rendering: Rendering, lossy: set[int]) -> None:
        dropped = [place.description for place in rendering.dropped if place.message not in lossy]
        if dropped:
            self._refuse(
                f"it drops {', '.join(dropped)}",
                "use a template that renders it, or remove it from the conversation",
            )

    def _check_ids(self, rendering: Rendering, regions: Sequence[Region], compares: bool) -> None:
        """Check that the last turn continues its prompt, and that its end is learned."""
        out, prompt, (*before, last) = Segments(), Segments(), rendering.messages
        self.append(rendering, _apart(regions), out)
        if compares and last["role"] == ASSISTANT:
            with suppress(ConversationError):  # a template need not render a part
                begun = rendering.run(before, prompt=True)
                self.append(begun, _apart(begun.blocks), prompt)
        ids = encode_items(self.tokenizer, prompt.items, join=True) if prompt.items else []
        if ids and ids != encode_items(self.tokenizer, out.items, join=True)[: len(ids)]:
            self._refuse(
                "its last turn does not continue its prompt, so the model would be trained on "
                "other ids than it sees in use",
                "pass the variables of the prompt, such as enable_thinking, or give the turn what "
                "its prompt begins, such as reasoning",
            )
        # White space after the last token, such as the line break in ChatML, does not matter.
        trained = [one for one, on in zip(out.items, out.trained, strict=True) if on]
        written = [one for one in trained if isinstance(one, int) or (one and one.strip())]
        end = written[-1] if written else None
        if isinstance(end, str):
            self._refuse(
                f"the trained part ends with the text {end[-20:]!r}, not with a special token, so "
                "a model would not learn to end its turn",
                "add the token that ends the assistant's turn to the template (inside the "
                "{% generation %} block, if there is one)",
            )
        elif end is not None and self._stops and end not in self._stops:
            name = next(name for name, id in self.special.items() if id == end)
            self._refuse(
                f"the trained part ends with {name!r}, but the stop tokens are "
                f"{' and '.join(self._stops.values())}",
                f"set the role with tok.replace(roles=dict(end_of_turn={name!r})), or pass "
                f"stop=({name!r},) to the template",
            )

    # ------------------------------------------------------------------ the rendered string

    def rendering(
        self,
        messages: Sequence[Any],
        fields: Mapping[str, Any],
        *,
        prompt: bool = False,
        mark: bool = False,
    ) -> Rendering:
        """Render a conversation with a disguise that does not mislead the template.

        If the template takes no lists of parts, lists of text parts are joined to one text. If it
        does not ask whether the content is none, it would print a missing content as "None".
        With `mark`, the result says which texts are dropped.
        """
        if not _TESTS_CONTENT.search(self.template.source):
            messages = [{**m, "content": ""} if m["content"] is None else m for m in messages]
        try:
            return self._disguised({**fields, "messages": list(messages)}, prompt, mark)
        except ConversationError:
            texts = [_with_text(message) for message in messages]
            if texts == list(messages):
                raise
        return self._disguised({**fields, "messages": texts}, prompt, mark)

    def _disguised(self, fields: dict[str, Any], prompt: bool, mark: bool) -> Rendering:
        characters = set(json.dumps([fields, self._variables], ensure_ascii=False, default=str))
        characters |= set(self.template.source)
        plain = self._run(fields, prompt)
        numbered = reversed([*enumerate(fields["messages"])])
        lists = {m["role"]: i for i, m in numbered if isinstance(m["content"], list)}
        for index in sorted(lists.values())[:_MOST_ROLES]:  # those of a role are written alike
            if str(fields["messages"][index]["content"]) in plain:
                raise ConversationError(
                    f"the content of message {index} is a list, which the template "
                    f"{self.name!r} does not take"
                )
        dropped: Sequence[MessageText] = ()
        written: list[str] = []  # the special tokens by a template that gets no key as it is
        for everywhere, keys, marked in _DISGUISES:
            if marked and not mark:
                continue
            disguise = Disguise(
                self._token_names, characters, everywhere=everywhere, keys=keys, mark=marked
            )
            hidden = disguise.conversation(fields)
            try:
                string = self._run(hidden, prompt, with_indices=True)
            except ConversationError:
                if not marked:
                    raise
                dropped = ()  # what the template makes of such texts says nothing
                continue
            self._check_written(string)
            dropped = disguise.dropped(string) if marked else dropped
            if keys:
                written = sorted(self._find.split(string)[1::2])
            elif sorted(self._find.split(string)[1::2]) != written:
                break  # a key is a part of a special token
            if disguise.take_off(without_indices(string)) == plain:
                return self._rendering(string, disguise, hidden, dropped)
        raise ConversationError(
            f"the template {self.template.name!r} searches for special tokens in the text of "
            "messages, but text never contains any",
            hint="pass this content in the fields that the template has for it",
        )

    def _rendering(
        self,
        marked: str,
        disguise: Disguise,
        fields: dict[str, Any],
        dropped: Sequence[MessageText] = (),
    ) -> Rendering:
        """A rendered string without marks around messages and blocks, and where they stood."""

        def run(messages: list[Any], *, prompt: bool = False) -> Rendering:
            changed = {**fields, "messages": messages}
            string = self._run(changed, prompt)
            self._check_written(string)
            return self._rendering(string, disguise, changed)

        string, starts, blocks = unmarked(marked, self._mask == "blocks")
        return Rendering(string, starts, blocks, disguise, fields["messages"], run, dropped)

    def _run(self, fields: dict[str, Any], prompt: bool, *, with_indices: bool = False) -> str:
        """Run the template; its result contains marks around blocks."""
        values = {**self._variables, **fields, "messages": list(map(_aliased, fields["messages"]))}
        variables = {**values, "add_generation_prompt": prompt}
        return str(self._in_sandbox(render, variables, with_indices))

    def _in_sandbox(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the sandbox with the template, in its process if it has one."""
        template = self.template
        if template.process is None:
            return function(template.source, template.name, *arguments)
        return template.process.ask(function.__name__, template.source, template.name, *arguments)


def _apart(regions: Sequence[Region]) -> list[Region]:
    """Regions, and an empty region where each of them begins."""
    return sorted([*(region._replace(end=region.start) for region in regions), *regions])


def _stripped(
    items: Iterable[str | int | None], ids: Collection[int], strip: Callable[[str, str], str]
) -> Iterator[str | int | None]:
    """Segments, with white space stripped from texts that follow one of the ids."""
    follows = False
    for item in items:
        if isinstance(item, str):
            item = strip(item, _SPACE) if follows else item
            follows = follows and not item
        elif item is not None and item != BREAK:
            follows = item in ids
        yield item


def _aliased(message: Any) -> Any:
    """A message with its reasoning in all fields that templates use, as in `transformers`."""
    reasoning = reasoning_of(message)
    if reasoning is None:
        return message
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _with_text(message: Any) -> Any:
    """A message whose content, if it is a list of text parts, is joined to one text."""
    text = text_of(message.get("content"))
    return message if text is None else {**message, "content": text}


def _stops(
    tokenizer: _core.Tokenizer, special: Mapping[str, int], names: Sequence[str] | None
) -> dict[int, str]:
    """The ids that may end a turn, and their names; empty if unknown."""
    if names is None:
        by_role = roles.roles(tokenizer)
        names = [by_role[role] for role in ("eos", "end_of_turn") if role in by_role]
    for name in names:
        if name not in special:
            raise SpecialTokenError(
                f"stop contains {name!r}, which is not a special token of the tokenizer; it has "
                f"{' '.join(special) or 'none'}"
            )
    return {special[name]: name for name in names}
