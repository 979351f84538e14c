"""The questions of the page and their answers, independent of HTTP.

The compiled module answers them, here as in a browser (`rust/view`). This file hands it the
material of the page: sample texts, a text in sixty languages, and chat templates. It answers only
what needs Python: a conversation under a tokenizer's own template in Jinja.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bytepair import _core, chat
from bytepair._internal.drawing import MARKED
from bytepair.chat import own
from bytepair.errors import ArgumentError, ConversationError
from bytepair.evaluate import declarations, samples
from bytepair.evaluate.languages import LANGUAGES
from bytepair.tokenizer import Tokenizer

TEMPLATES: Final = {one.name: one for one in (chat.NANOCHAT, chat.CHATML, chat.LLAMA3)}

#: The roles of messages under a template in Jinja, which does not say them.
_JINJA_ROLES: Final[dict[str, list[str]]] = {"system": [], "user": [], "assistant": [], "tool": []}

#: Languages in ten scripts, some right-to-left, some without spaces, some with stacked marks.
_SCRIPTS: Final = ("en", "el", "ru", "ar", "he", "hi", "th", "ka", "ko", "zh-Hans")


class Answers:
    """The answers to all questions of the page about some tokenizers.

    Args:
        tokenizers: the tokenizers, by name.
        missing: why others are not among them; the page says so.

    Attributes:
        names: the names of the tokenizers.

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
        self.names, self._missing = list(tokenizers), list(missing)
        _check_names(self.names)
        self._view = _core.View(material())
        self._own: dict[str, tuple[Tokenizer, dict[str, chat.JinjaTemplate | None]]] = {}
        for name, tok in tokenizers.items():
            number = self._view.add(name, tok)
            self._own[str(number)] = tok, _own(tok)

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
        found = self.answer({"what": what, **members}, body)
        return found if isinstance(found, bytes) else json.loads(found)

    def answer(self, question: Mapping[str, object], body: bytes = b"") -> str | bytes:
        """The answer to a question as the page gets it: JSON, or bytes."""
        if question.get("what") == "chat":
            tok, own = self._own.get(str(question.get("t")), (None, {}))
            if tok is not None and (template := own.get(str(question.get("template")))):
                return json.dumps(_chat(tok, template, json.loads(body)))
        found = self._view.ask(json.dumps(question), body)
        return self._about(json.loads(found)) if question.get("what") == "about" else found

    def _about(self, about: dict[str, Any]) -> str:
        """The answer to `about` with what is missing, and tokenizers' own templates first."""
        about["missing"] = self._missing
        for one in about["tokenizers"]:
            _, own = self._own.get(str(one["t"]), (None, {}))
            for name in own:
                about["templates"].setdefault(name, _JINJA_ROLES)
            one["templates"] = [*own, *(name for name in one["templates"] if name not in own)]
            one["own"] = list(own)
        return json.dumps(about)


def _own(tok: Tokenizer) -> dict[str, chat.JinjaTemplate | None]:
    """The tokenizer's own templates by name; None for one that the view knows.

    Nothing that training needs is checked, since they are only displayed.
    """
    found: dict[str, chat.JinjaTemplate | None] = {}
    for name, template in own.templates(tok).items():
        if isinstance(template, chat.Template):
            found[template.name] = None
        else:
            found[name] = dataclasses.replace(template, checks="off")
    return found


def _chat(tok: Tokenizer, template: chat.JinjaTemplate, conversation: Any) -> dict[str, Any]:
    """The tokens of a conversation under a template in Jinja.

    If the template gives no mask, `no_mask` says why, and no token is trained on.
    """
    try:
        rendered, reason = _rendered(tok, template, conversation), None
    except ConversationError as error:
        unmasked = dataclasses.replace(template, mask="none")
        rendered, reason = _rendered(tok, unmasked, conversation), str(error)
    special = set(tok.special_tokens.values())
    tokens = [
        {"id": id, "hex": tok.token_bytes(id).hex(), "trained": on, "special": id in special}
        for id, on in zip(*rendered, strict=True)
    ]
    return {"tokens": tokens, "no_mask": reason}


def _rendered(
    tok: Tokenizer, template: chat.JinjaTemplate, conversation: Any
) -> tuple[list[int], list[int]]:
    return tok.render_conversation(conversation, template=template, on_untrained="keep")


def material() -> str:
    """What the page shows for any tokenizer, as JSON; `rust/view` says what it contains."""
    texts = declarations()
    about = {
        "samples": {"ten scripts": ten_scripts(), **samples()},
        "templates": {name: _roles(one) for name, one in TEMPLATES.items()},
        "marked": MARKED,
    }
    languages = [{"code": c, "name": LANGUAGES[c], "text": texts[c]} for c in sorted(texts)]
    found = {"about": about, "languages": languages, "templates": list(TEMPLATES.values())}
    return json.dumps(found, default=_plain, ensure_ascii=False)


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
    found = {name: list(role.parts) for name, role in template.roles.items()}
    return found if template.merge_system is None else {"system": [], **found}


def _check_names(names: Iterable[str]) -> None:
    """Check that names are text; the names of files are bytes on some systems."""
    for name in names:
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise ArgumentError(
                f"the name {name!r} of a tokenizer is not valid UTF-8, so no page can show it; "
                "rename the file or folder"
            )
