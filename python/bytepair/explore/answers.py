"""The requests of the page and their answers, independent of HTTP.

Splits and vocabularies are sent as numbers (uint32, little-endian), because they may have a million
tokens; the rest is JSON. The bytes of a token are hexadecimal digits, as they may not be text.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from bytepair import chat
from bytepair._internal.drawing import MARKED
from bytepair.chat import own
from bytepair.errors import ArgumentError, ConversationError
from bytepair.evaluate import by_language, declarations, samples
from bytepair.explore.merging import LONGEST_PRETOKEN_BYTES, Tree, merge_steps, merge_tree
from bytepair.formats.parts import pattern_text
from bytepair.tokenizer import Tokenizer

#: The maximum number of tokens listed that were built from a token.
MOST_CHILDREN: Final = 40

#: The templates that a tokenizer may have the special tokens of, besides its own.
TEMPLATES: Final = {one.name: one for one in (chat.NANOCHAT, chat.CHATML, chat.LLAMA3)}

#: Languages in ten scripts, some right-to-left, some without spaces, some with stacked marks.
_SCRIPTS: Final = ("en", "el", "ru", "ar", "he", "hi", "th", "ka", "ko", "zh-Hans")


def _check_names(names: Iterable[str]) -> None:
    """Check that names are text; the names of files are bytes on some systems."""
    for name in names:
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise ArgumentError(
                f"the name {name!r} of a tokenizer is not valid UTF-8, so no page can show it; "
                "rename the file or folder"
            )


class Answers:
    """The answers to all requests of the page about some tokenizers.

    `index` is the number of the tokenizer, and `special` says whether special tokens in the text
    are encoded to their ids.

    Attributes:
        names: the names of the tokenizers.

    Raises:
        ArgumentError: if a name is not valid text.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> answers = Answers({"mine": tok})
        >>> answers.token(0, 259)["hex"]
        '68656c6c6f'
        >>> int.from_bytes(answers.split(0, "hello hello", special=False)[:4], "little")
        3
    """

    def __init__(self, tokenizers: Mapping[str, Tokenizer]) -> None:
        self.names = list(tokenizers)
        _check_names(self.names)
        self._tokenizers = list(tokenizers.values())
        self._ranks = [tok.mergeable_ranks() for tok in self._tokenizers]
        self._tokens = [tok.tokens for tok in self._tokenizers]
        self._parents = [
            {left + right: (left, right) for left, right in reversed(tok.merges())}
            for tok in self._tokenizers
        ]
        self._order = [_order(tok) for tok in self._tokenizers]
        self._children = [_children(parents) for parents in self._parents]
        self._own = [_own(tok) for tok in self._tokenizers]
        self._templates: list[dict[str, Any]] = [
            {**held, **{name: one for name, one in TEMPLATES.items() if name not in held}}
            for held in self._own
        ]

    def about(self) -> dict[str, Any]:
        """The tokenizers, example texts, and what the page needs to draw a token."""
        return {
            "tokenizers": [
                {
                    "name": name,
                    "size": tok.vocab_size,
                    "special": tok.special_tokens,
                    "rule": tok.merge_rule,
                    "pattern": pattern_text(tok),
                    "templates": [key for key, one in templates.items() if _fits(tok, one)],
                    "own": list(held),
                }
                for name, tok, templates, held in zip(
                    self.names, self._tokenizers, self._templates, self._own, strict=True
                )
            ],
            "samples": {"ten scripts": ten_scripts(), **samples()},
            "templates": {name: _roles(one) for name, one in TEMPLATES.items()},
            "marked": MARKED,
        }

    def split(self, index: int, text: str, *, special: bool) -> bytes:
        """The number of ids of a text, the ids, and the number of bytes of each."""
        tok = self._tokenizers[index]
        ids = tok.encode_to_numpy(text, special="all" if special else "text").astype("<u4")
        count = np.array([len(ids)], "<u4")
        return b"".join([count.tobytes(), ids.tobytes(), self._lengths(index)[ids].tobytes()])

    def vocabulary(self, index: int) -> bytes:
        """The number of ids, the length of each token in bytes, and all bytes, concatenated."""
        tokens, lengths = self._tokens[index], self._lengths(index)
        return b"".join([np.array([len(tokens)], "<u4").tobytes(), lengths.tobytes(), *tokens])

    def token(self, index: int, id: int) -> dict[str, Any]:
        """One token: how it is merged, what is merged from it, and similar tokens.

        Raises:
            UnknownIdError: if the id is not in the vocabulary.
        """
        tok = self._tokenizers[index]
        token = tok.token_bytes(id)
        special = id in tok.special_tokens.values()
        near = range(max(id - 4, 0), min(id + 5, tok.vocab_size))
        children = [] if special else self._children[index][token]
        tree = None
        if not special and len(token) <= LONGEST_PRETOKEN_BYTES:  # a larger tree is unreadable
            tree = self._tree(index, merge_tree(token, self._parents[index]))
        return {
            "id": id,
            "hex": token.hex(),
            "special": special,
            "rank": None if special else self._rank(index, token),
            "tree": tree,
            "near": [self._named(index, n) for n in near if n != id and self._tokens[index][n]],
            "alike": [] if special else self._alike(index, token),
            "children": [
                self._named(index, self._ranks[index][c]) for c in children[:MOST_CHILDREN]
            ],
            "children_count": len(children),
        }

    def built(self, index: int, ids: Iterable[int]) -> list[dict[str, Any]]:
        """Some tokens and all that they are merged from, once each; `parts` are two of the others.

        A token beyond the maximum length has no parts.
        """
        tok, parents = self._tokenizers[index], self._parents[index]
        special = set(tok.special_tokens.values())
        ids = set(ids)
        found: dict[bytes, dict[str, Any]] = {}
        waiting = [tok.token_bytes(id) for id in sorted(ids - special)]
        while waiting:
            token = waiting.pop()
            if token in found:
                continue
            parts = parents.get(token, ()) if len(token) <= LONGEST_PRETOKEN_BYTES else ()
            waiting += parts
            found[token] = {
                "id": self._ranks[index].get(token),
                "hex": token.hex(),
                "rank": self._rank(index, token),
                "parts": [part.hex() for part in parts] or None,
            }
        return list(found.values()) + [
            {"id": id, "hex": tok.token_bytes(id).hex(), "rank": None, "special": True}
            for id in sorted(ids & special)
        ]

    def languages(self, index: int) -> list[dict[str, Any]]:
        """The number of tokens of the same text in each of sixty languages, in order of code."""
        found = sorted(by_language(self._tokenizers[index]), key=lambda one: one.code)
        return [
            {"code": one.code, "name": one.name, "bytes": one.bytes, "tokens": one.tokens}
            for one in found
        ]

    def steps(self, index: int, pretoken: bytes) -> dict[str, Any]:
        """The merges of one pretoken, one by one.

        Raises:
            ValueError: if the pretoken is too long to show.
        """
        tok, ranks = self._tokenizers[index], self._ranks[index]
        steps = merge_steps(tok, pretoken)
        return {
            "steps": [
                {
                    "parts": [{"hex": p.hex(), "id": ranks.get(p)} for p in step.parts],
                    "merged": step.merged,
                    "rank": step.rank,
                }
                for step in steps
            ],
            "ids": tok.encode_pretoken(pretoken) if pretoken else [],
        }

    def pretoken_at(self, index: int, text: str, at: int, *, special: bool) -> dict[str, Any]:
        """The pretoken that contains a byte of the UTF-8 of a text."""
        tok = self._tokenizers[index]
        start, part = 0, text
        if special:
            start, part = self._between_special(tok, text, at)
        for pretoken in tok.pretokenize(part):
            size = len(pretoken.encode())
            if start <= at < start + size:
                return {"start": start, "hex": pretoken.encode().hex()}
            start += size
        return {"start": at, "hex": ""}

    def chat(self, index: int, conversation: Any, template: str) -> dict[str, Any]:
        """The ids and the mask of a conversation.

        Args:
            index: the number of the tokenizer.
            conversation: the conversation.
            template: the name of a template of the tokenizer, or of one whose tokens it has.

        Returns:
            The tokens; and under "no_mask" why the template gives no mask, if it gives none.

        Raises:
            ConversationError: if it breaks a rule of the template.
        """
        if template not in self._templates[index]:
            raise ConversationError(f"there is no template {template!r}")
        tok, found = self._tokenizers[index], self._templates[index][template]
        try:
            rendered, why = _rendered(tok, conversation, found), None
        except ConversationError as error:
            if not isinstance(found, chat.JinjaTemplate):
                raise
            rendered, why = _rendered(tok, conversation, replace(found, mask="none")), str(error)
        special = set(tok.special_tokens.values())
        return {
            "tokens": [
                {**self._named(index, id), "trained": on, "special": id in special}
                for id, on in zip(*rendered, strict=True)
            ],
            "no_mask": why,
        }

    # ------------------------------------------------------------------ parts of answers

    def _lengths(self, index: int) -> Any:
        return np.array([len(token) for token in self._tokens[index]], "<u4")

    def _named(self, index: int, id: int) -> dict[str, Any]:
        return {"id": id, "hex": self._tokens[index][id].hex()}

    def _rank(self, index: int, token: bytes) -> int | None:
        """The rank of the merge that produces a token: its id under the rule of ranks."""
        if self._tokenizers[index].merge_rule == "ranks":
            return self._ranks[index].get(token)
        pair = self._parents[index].get(token)
        return self._order[index][pair] if pair else None

    def _tree(self, index: int, tree: Tree) -> dict[str, Any]:
        node: dict[str, Any] = {"hex": tree.token.hex(), "id": self._ranks[index].get(tree.token)}
        if tree.left and tree.right:
            node["parts"] = [self._tree(index, tree.left), self._tree(index, tree.right)]
        return node

    def _alike(self, index: int, token: bytes) -> list[dict[str, Any]]:
        """The same word with or without a leading space, and with other capitalization."""
        try:
            word = token.decode().removeprefix(" ")
        except UnicodeDecodeError:
            return []
        forms = {word, word.lower(), word.upper(), word.capitalize(), word.title()}
        ranks = self._ranks[index]
        found = {(space + form).encode() for form in forms for space in ("", " ")} - {token}
        return [self._named(index, ranks[one]) for one in sorted(found) if one in ranks]

    def _between_special(self, tok: Tokenizer, text: str, at: int) -> tuple[int, str]:
        """The start of the ordinary text around a byte, and that text."""
        special = set(tok.special_tokens.values())
        ids = tok.encode(text, special="all")
        place = 0
        for is_special, run in itertools.groupby(ids, key=special.__contains__):
            size = len(data := tok.decode_bytes(list(run)))
            if place <= at < place + size:
                return place, "" if is_special else data.decode()
            place += size
        return at, ""


def _order(tok: Tokenizer) -> dict[tuple[bytes, bytes], int]:
    """The position of each merge in the list; empty under the rule of ranks."""
    merges = tok.merges() if tok.merge_rule == "merges" else []
    return {pair: place for place, pair in reversed(list(enumerate(merges)))}


def _children(parents: Mapping[bytes, tuple[bytes, bytes]]) -> dict[bytes, list[bytes]]:
    """For each token, the tokens that are merged from it, in order of rank."""
    children: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for token, (left, right) in reversed(list(parents.items())):
        children[left].append(token)
        if right != left:
            children[right].append(token)
    return children


def _own(tok: Tokenizer) -> dict[str, Any]:
    """The tokenizer's own templates by name, for display: nothing that training needs is checked.

    nanochat's has its own name, since parts of messages can be added under it.
    """
    found: dict[str, Any] = {}
    for name, template in own.templates(tok).items():
        if isinstance(template, chat.Template):
            found[template.name] = template
        else:
            found[name] = replace(template, checks="off")
    return found


def _rendered(tok: Tokenizer, conversation: Any, template: Any) -> tuple[list[int], list[int]]:
    return tok.render_conversation(conversation, template=template, on_untrained="keep")


def _fits(tok: Tokenizer, template: Any) -> bool:
    """Whether a tokenizer has the special tokens of a template, and can render it."""
    try:
        _rendered(tok, [{"role": "user", "content": "a"}], template)
    except ConversationError:
        return isinstance(template, chat.JinjaTemplate)  # it may need more than one message
    except (ValueError, ImportError):
        return False
    return True


def _roles(template: chat.Template) -> dict[str, list[str]]:
    """The roles of messages, and for each the kinds of parts."""
    roles = {name: list(role.parts) for name, role in template.roles.items()}
    return roles if template.merge_system is None else {"system": [], **roles}


def ten_scripts() -> str:
    """One line of the declaration in each of ten scripts."""
    texts = declarations()
    return "\n".join(texts[code].splitlines()[2] for code in _SCRIPTS)
