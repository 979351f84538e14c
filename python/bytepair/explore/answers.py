"""Answers the questions of the page, independently of HTTP.

The compiled module answers them, here as in a browser (`rust/view`). This file passes it the
material of the page: sample texts, a text in sixty languages, and chat templates. It answers only
what needs Python: a conversation under a tokenizer's own template in Jinja.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bytepair import _core, chat
from bytepair._internal.drawing import MARKED
from bytepair.chat import renderer
from bytepair.chat.rows import parsed_json
from bytepair.errors import ArgumentError, ConversationError
from bytepair.evaluate import samples
from bytepair.evaluate.evaluation import LANGUAGES, declarations
from bytepair.formats import published
from bytepair.tokenizer import Tokenizer

#: The published vocabularies with which the page opens, and the names under which it shows them.
PUBLISHED: Final = {"gpt2": "GPT-2", "cl100k_base": "GPT-4 (cl100k_base)", "o200k_base": "GPT-4o"}

TEMPLATES: Final = {one.name: one for one in (chat.NANOCHAT, chat.CHATML, chat.LLAMA3)}

#: The roles of messages under a template in Jinja, which does not say them.
_JINJA_ROLES: Final[dict[str, list[str]]] = {"system": [], "user": [], "assistant": [], "tool": []}

#: The limits of a conversation under such a template, as `rust/view` has them for others.
_MOST_BYTES: Final = 1 << 22
_MOST_MESSAGES: Final = 1 << 12
_MOST_TOKENS: Final = 1 << 16
#: Languages in ten scripts, some right-to-left, some without spaces, some with stacked marks.
_SCRIPTS: Final = ("en", "el", "ru", "ar", "he", "hi", "th", "ka", "ko", "zh-Hans")


def on_this_machine() -> list[str]:
    """The names of `PUBLISHED` that `bytepair.load` finds without a network.

    Example:
        >>> set(on_this_machine()) <= set(PUBLISHED)
        True
    """
    return [name for name in PUBLISHED if published.rank_file(name)]


class Answers:
    """The answers to all questions of the page about some tokenizers.

    Args:
        tokenizers: the tokenizers, by name.
        missing: why others are not among them; the page says so.

    Attributes:
        view: answers what needs no Python.

    Raises:
        ArgumentError: if a name is not valid text, or there are too many tokenizers.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> answers = Answers({"mine": tok})
        >>> answers.ask("token", t=0, id=259)["hex"]
        '68656c6c6f'
        >>> int.from_bytes(answers.ask("compare", b"hello hello", shown="0")[:4], "little")
        3
    """

    def __init__(self, tokenizers: Mapping[str, Tokenizer], missing: Sequence[str] = ()) -> None:
        self._own = {str(t): (tok, _own(tok)) for t, tok in enumerate(tokenizers.values())}
        names = [name for _, templates in self._own.values() for name in templates]
        self.view = _core.View(material(names, missing))
        self._process = chat.RenderProcess()
        for name, (tok, templates) in zip(tokenizers, self._own.values(), strict=True):
            self.view.add(name, tok, [*templates])

    def ask(self, what: str, body: bytes = b"", **members: object) -> Any:
        """The answer to a question: a value of JSON, or bytes.

        Args:
            what: the name of the question, as in the list of `rust/view/src/lib.rs`.
            body: the text, word or file that it is about.
            members: its other members, such as the number `t` of a tokenizer.

        Raises:
            ArgumentError: if it is no question, or asks for something that does not exist.
            ConversationError: if a conversation breaks a rule of its template.
        """
        answer = self.answer({"what": what, **members}, body)
        return answer if isinstance(answer, bytes) else json.loads(answer)

    def answer(self, question: Mapping[str, object], body: bytes = b"") -> str | bytes:
        """The answer to a question as the page gets it: JSON, or bytes."""
        if question.get("what") == "chat":
            tok, templates = self._own.get(str(question.get("t")), (None, {}))
            template = templates.get(str(question.get("template")))
            if tok is not None and isinstance(template, chat.JinjaTemplate):
                if len(body) > _MOST_BYTES:
                    raise ArgumentError(f"the page takes at most {_MOST_BYTES:,} bytes of text")
                limited = dataclasses.replace(template, process=self._process)
                conversation = parsed_json(body.decode(errors="replace"), "the conversation")
                parts = conversation.values() if isinstance(conversation, dict) else [conversation]
                if any(isinstance(part, list) and len(part) > _MOST_MESSAGES for part in parts):
                    raise ArgumentError(f"the page shows at most {_MOST_MESSAGES:,} messages")
                rendered, reason = _rendered(tok, limited, conversation)
                if len(rendered[0]) > _MOST_TOKENS:
                    raise ArgumentError(f"the page shows at most {_MOST_TOKENS:,} tokens")
                tokens = self.ask("tokens", json.dumps(rendered).encode(), t=question["t"])
                return json.dumps({**tokens, "no_mask": reason})
        return self.view.ask(json.dumps(question), body)


def _own(tok: Tokenizer) -> dict[str, chat.Template | chat.JinjaTemplate]:
    """The tokenizer's own templates by name; the view knows those that are no Jinja."""
    items = [(name, renderer.named(tok, name)) for name in tok.chat_templates]
    return {one.name if isinstance(one, chat.Template) else name: one for name, one in items}


def _rendered(
    tok: Tokenizer, template: chat.JinjaTemplate, conversation: Any
) -> tuple[tuple[list[int], list[int]], str | None]:
    """The ids and the mask of a conversation under a template in Jinja.

    If the template gives no mask, the last value says why, and no token is trained on. Nothing
    that training needs is checked, since the tokens are only displayed.
    """

    def render(**changes: Any) -> tuple[list[int], list[int]]:
        unchecked = dataclasses.replace(template, checks="off", **changes)
        return tok.render_conversation(conversation, template=unchecked, on_untrained="keep")

    try:
        return render(), None
    except ConversationError as error:
        return render(mask="none"), str(error)


def material(names: Iterable[str] = (), missing: Sequence[str] = ()) -> str:
    """What the page shows for any tokenizer, as JSON; `rust/view` says what it contains.

    Args:
        names: the names of templates in Jinja.
        missing: why some tokenizers are not shown.
    """
    texts = declarations()
    about = {
        "samples": {"ten scripts": ten_scripts(), **samples()},
        "templates": {
            **dict.fromkeys(names, _JINJA_ROLES),
            **{name: _roles(one) for name, one in TEMPLATES.items()},
        },
        "marked": MARKED,
        "missing": missing,
    }
    languages = [{"code": c, "name": LANGUAGES[c], "text": texts[c]} for c in sorted(texts)]
    values = {"about": about, "languages": languages, "templates": list(TEMPLATES.values())}
    return json.dumps(values, default=_plain, ensure_ascii=False)


def ten_scripts() -> str:
    """One line of the declaration in each of ten scripts."""
    texts = declarations()
    return "\n".join(texts[code].splitlines()[2] for code in _SCRIPTS)


def _plain(value: Any) -> object:
    """A template, or a part of one, as JSON."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(value) if isinstance(value, Mapping) else sorted(value)


def _roles(template: chat.Template) -> dict[str, list[str]]:
    """The roles of messages, and for each the kinds of parts."""
    roles = {name: list(role.parts) for name, role in template.roles.items()}
    return roles if template.merge_system is None else {"system": [], **roles}


_HERE: Final = Path(__file__).parent


def to_html(
    tokenizers: Mapping[str, Tokenizer],
    text: str,
    *,
    special: bool = False,
    all_views: bool = False,
) -> str:
    """A page about some tokenizers that works offline.

    Args:
        tokenizers: one to six tokenizers, by name.
        text: the text, at most 1 MiB of UTF-8.
        special: whether special tokens in the text are encoded to their ids.
        all_views: whether the page has all views, for any text; it then contains the vocabularies
            and the compiled module, about a megabyte.

    Raises:
        ArgumentError: if there are no or too many tokenizers, the text is too long or has half of a
            surrogate pair, or this installation does not have the module for `all_views`.
    """
    folder, needs = ("alone", module()) if all_views else ("offline", None)
    paths = [*(_HERE / "page").iterdir(), *(_HERE / folder).iterdir()]
    files = {path.name: path.read_text(encoding="utf-8") for path in paths}
    files["index.html"] = re.sub('<p class="promise.*\n', "", files["index.html"])  # its links
    return Answers(tokenizers).view.to_html(files, text, special=special, module=needs)


def module() -> tuple[bytes, bytes]:
    """The compiled module for browsers, and the script of the thread in which it runs."""
    try:
        wasm, script = (_HERE / "wasm" / name for name in ("bytepair_bg.wasm", "bytepair.js"))
        worker = script.read_bytes() + b"\n" + (_HERE / "alone" / "worker.js").read_bytes()
        return wasm.read_bytes(), worker
    except FileNotFoundError:
        raise ArgumentError(
            "this installation has no module for browsers, which a page with all views contains; "
            "in a checkout, `make wasm` builds it"
        ) from None
