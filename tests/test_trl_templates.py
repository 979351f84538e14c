"""TRL's chat templates on conversations of 36 shapes: ids and masks are those of transformers.

What differs is named: `JOINED`, `IN_THE_PROMPT`, `OTHER_TEXT` and the reasons of `REFUSED`. Tags
of reasoning in the content are read as reasoning; a template that writes none gets them as text,
which never becomes a special token here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

import bytepair
from bytepair import chat
from bytepair._internal.sandbox import usage
from bytepair.chat import ChatOptions
from bytepair.chat.rows import REASONING
from bytepair.errors import ConversationError
from trl_source import REASON, TEMPLATES, TRAINING

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not TEMPLATES, reason=REASON),
]
transformers: Any = pytest.importorskip("transformers", reason="needs the package transformers")

#: How the names of special tokens look in the sources of templates.
NAME: Final = re.compile(r"<[|｜][^<>\s{}'\"]+[|｜]>|</?[a-z_]+>|\[/?[A-Z_]{3,}\]")

#: Shapes whose ids or masks differ: a token of transformers spans the end of a prompt. There we
#: begin a new one, so that the ids of a training text begin with those of its prompt.
JOINED: Final = ("white space",)

#: Parts of the prompt that TRL trains on: the line break after the role in Qwen2.5,
#: the start of a thought, and the start of a turn in gpt-oss.
IN_THE_PROMPT: Final = {
    "\n", "<think>", "<think>\n", "<think></think>", "<think>\n\n</think>\n\n", "<|start|>assistant"
}  # fmt: skip

#: Shapes of which some training templates of TRL write other text than the original.
OTHER_TEXT: Final = ("an empty answer", "the assistant first", "tools, a call at the end")

#: What errors say that refuse the original of a training template.
REFUSED: Final = (
    "does not continue the prompt", "differently when others follow", "it drops",
    "not with a special token", "TypeError", "cannot render the messages before it alone",
)  # fmt: skip


def turn(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def call(arguments: Any = None, id: str = "call00001") -> dict[str, Any]:
    arguments = {"q": "what", "n": 3} if arguments is None else arguments
    return {"id": id, "type": "function", "function": {"name": "look_up", "arguments": arguments}}


def calling(*calls: dict[str, Any], content: Any = "", **more: Any) -> dict[str, Any]:
    return turn("assistant", content, tool_calls=[*calls] or [call()], **more)


def parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


ASK, SAY, SYSTEM = (
    turn("user", "what?"),
    turn("assistant", "it is nine"),
    turn("system", "be brief"),
)
FOUND = turn("tool", "nine", tool_call_id="call00001", name="look_up")
SCHEMA = {"type": "object", "properties": {"q": {"type": "string", "description": "é"}}}
FUNCTION = {"name": "look_up", "description": "looks up", "parameters": SCHEMA}
TOOL = {"type": "function", "function": FUNCTION}
TAGS: Final = "tags in the content"
SAID_TAGS = turn("assistant", "<think>\nso, nine\n</think>\n\nit is nine")
THINK = turn("assistant", "it is nine", reasoning_content="so, nine")

#: Messages by what is special about them; those with tools come second.
PLAIN: Final[dict[str, list[dict[str, Any]]]] = {
    "one turn": [ASK, SAY],
    "a question": [ASK],
    "two turns": [ASK, SAY] * 2,
    "a system message": [SYSTEM, ASK, SAY],
    "an empty system message": [turn("system", ""), ASK, SAY],
    "a late system message": [ASK, SAY, SYSTEM, ASK, SAY],
    "two system messages": [SYSTEM, SYSTEM, ASK, SAY],
    "a developer": [turn("developer", "be brief"), ASK, SAY],
    "a system message alone": [SYSTEM],
    "the assistant first": [SAY, ASK, SAY],
    "two questions": [ASK, ASK, SAY],
    "two answers": [ASK, SAY, SAY],
    "an unanswered question": [ASK, SAY, ASK],
    "an unknown role": [ASK, turn("critic", "no")],
    "a call without tools": [ASK, calling(), FOUND, SAY],
    "reasoning": [ASK, THINK],
    "reasoning in two turns": [ASK, THINK] * 2,
    TAGS: [ASK, SAID_TAGS],
    "parts": [turn("user", parts("what?")), turn("assistant", parts("it is nine"))],
    "an empty answer": [ASK, turn("assistant", "")],
    "white space": [turn("user", " \n a \t\n"), turn("assistant", "\n\n b  c \n")] * 2,
    "letters": [turn("system", "é"), turn("user", "e\u0301 你好 🙂 \u200b\ufeff"),
                turn("assistant", "Привет\r\nمرحبا ﬁ １２")],
    "a long text": [turn("user", "what is it? " * 900), turn("assistant", "it is nine. " * 900)],
}  # fmt: skip
WITH_TOOLS: Final[dict[str, list[dict[str, Any]]]] = {
    "no call": [ASK, SAY],
    "a system message and no call": [SYSTEM, ASK, SAY],
    "a call": [ASK, calling(), FOUND, SAY],
    "a call at the end": [ASK, calling()],
    "a call beside text": [ASK, calling(content="I look"), FOUND, SAY],
    "a call without content": [ASK, calling(content=None), FOUND, SAY],
    "two calls at once": [ASK, calling(call(), call(id="call00002")), FOUND,
                          {**FOUND, "tool_call_id": "call00002"}, SAY],
    "two calls in turn": [ASK, calling(), FOUND, calling(), FOUND, SAY],
    "arguments as text": [ASK, calling(call('{"q": "é\\n", "n": [1, null]}')), FOUND, SAY],
    "nested arguments": [ASK, calling(call({"b": {"a": [1, {"é": True}]}, "a": 1.5})), FOUND, SAY],
    "a result of lines": [ASK, calling(), {**FOUND, "content": '{"a": "1\\n"}\n\n2'}, SAY],
    "reasoning and a call": [ASK, calling(reasoning_content="look"), FOUND, THINK],
    "a call in the second turn": [ASK, SAY, ASK, calling(), FOUND, SAY],
}  # fmt: skip
SHAPES: Final = {
    **{name: {"messages": messages} for name, messages in PLAIN.items()},
    **{f"tools, {name}": {"messages": messages, "tools": [TOOL, {**TOOL, "function": {**FUNCTION,
       "name": "g"}}]} for name, messages in WITH_TOOLS.items()},
}  # fmt: skip


def test_there_are_36_shapes() -> None:
    assert len(SHAPES) == 36


def tokenizers(source: str) -> tuple[bytepair.Tokenizer, Any]:
    """A tokenizer with the special tokens that a template writes, here and in transformers."""
    names = sorted({"<|bos|>", "<|eos|>", *NAME.findall(source)})
    tok = bytepair.train(bytepair.sample.paths()[:2], 1500 + len(names), special_tokens=names)
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bytepair.compat.to_huggingface(tok),
        bos_token="<|bos|>",
        eos_token="<|eos|>",
    )
    return tok.replace(roles={"bos": "<|bos|>", "eos": "<|eos|>"}), theirs


def rendered(theirs: Any, row: dict[str, Any], source: str, **options: Any) -> Any:
    """The ids and the mask of transformers; None if the template raises an error."""
    try:
        found = theirs.apply_chat_template(
            row["messages"], tools=row.get("tools"), chat_template=source, tokenize=True,
            return_dict=True, **options,
        )  # fmt: skip
    except Exception:
        return None
    return found["input_ids"], found.get("assistant_masks")


def as_theirs(name: str, row: dict[str, Any], source: str) -> dict[str, Any]:
    """What transformers is to render for the same ids."""
    messages = row["messages"]
    if name == TAGS and not usage(source, "template").names.isdisjoint(REASONING):
        messages = [ASK, THINK]  # they are read as reasoning
    return {**row, "messages": [with_reasoning(message) for message in messages]}


def with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    """The message with its reasoning under every name: a template reads one of them."""
    text = message.get("reasoning_content")
    return message | ({} if text is None else dict.fromkeys(REASONING, text))


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.stem)
def test_ids_and_masks_are_those_of_transformers(file: Path) -> None:
    source = file.read_text("utf-8")
    tok, theirs = tokenizers(source)
    blocks = file in TRAINING
    template = chat.JinjaTemplate(source, checks="off", mask="blocks" if blocks else "none")
    options, compared = ChatOptions(reasoning="tags"), 0
    for name, row in SHAPES.items():
        same = as_theirs(name, row, source)
        expected = rendered(theirs, same, source, return_assistant_tokens_mask=blocks)
        if expected and "{'type': 'text'" in tok.decode(expected[0]):
            continue  # the template takes no parts
        why = ""
        try:
            ids, mask = tok.render_conversation(
                row, template=template, options=options, on_untrained="keep"
            )
        except ConversationError as refused:
            why = str(refused)
        if why:
            assert not expected or (name == TAGS and "searches for special" in why), (name, why)
            continue
        if not expected:
            continue
        compared += 1
        assert tok.decode(ids) == tok.decode(expected[0]), name
        if name not in JOINED and (name != TAGS or same["messages"][-1] != SAID_TAGS):
            assert ids == expected[0], name
            assert not blocks or mask == expected[1], name
        if row["messages"][-1]["role"] != "assistant":
            prompt = tok.render_for_completion(row, template=template, options=options)
            again = rendered(theirs, row, source, add_generation_prompt=True)
            assert again is None or prompt == again[0], name
    assert compared > 1


@pytest.mark.parametrize("file", TRAINING, ids=lambda file: file.stem.removesuffix("_training"))
def test_a_derived_mask_is_that_of_trl_or_is_refused(file: Path) -> None:
    """The template without blocks: what is trained on is what TRL's training template marks."""
    source = file.read_text("utf-8")
    original = file.with_name(file.name.replace("_training", "")).read_text("utf-8")
    tok, theirs = tokenizers(source + original)
    template = chat.JinjaTemplate(original, stop=())
    for name, row in SHAPES.items():
        same = {**row, "messages": list(map(with_reasoning, row["messages"]))}
        expected = rendered(theirs, same, source, return_assistant_tokens_mask=True)
        if expected is None or name in ("parts", TAGS):
            continue
        why = ""
        try:
            ids, mask = tok.render_conversation(row, template=template, on_untrained="keep")
        except ConversationError as refused:
            why = str(refused)
        if why:
            assert any(reason in why for reason in REFUSED), (name, why)
            continue
        if name in OTHER_TEXT and tok.decode(ids) != tok.decode(expected[0]):
            continue
        if ids != expected[0]:  # the answer is encoded apart from a prompt that ends in a text
            assert tok.decode(ids) == tok.decode(expected[0]), name
            continue
        differ = [at for at, (a, b) in enumerate(zip(mask, expected[1], strict=True)) if a != b]
        assert {mask[at] for at in differ} <= {0}, name
        runs = "".join(tok.decode([ids[at]]) + ("" if at + 1 in differ else "\0") for at in differ)
        assert set(runs.split("\0")[:-1]) <= IN_THE_PROMPT, name


@pytest.mark.parametrize("name", ["phi3", "phi3_5", "phi3_training", "phi3_5_training"])
def test_tokens_that_strip_white_space_do_so(name: str, shared: Path) -> None:
    file = next((path for path in TEMPLATES if path.stem == name), None)
    if file is None:
        pytest.skip(f"this version of TRL has no template {name}")
    source, blocks = file.read_text("utf-8"), file in TRAINING
    path = shared / "tokenizers" / "phi-3-mini.tokenizer.json"
    roles = {"bos": "<s>", "eos": "<|endoftext|>"}
    tok = bytepair.load(path).replace(roles=roles)
    names = {f"{role}_token": token for role, token in roles.items()}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), **names)
    mask: Any = "blocks" if blocks else "none"
    template = chat.JinjaTemplate(source, checks="off", mask=mask)
    for shape, row in SHAPES.items():
        expected = rendered(theirs, row, source, return_assistant_tokens_mask=blocks)
        if expected is not None and shape != "parts":
            found = tok.render_conversation(row, template=template, on_untrained="keep")
            assert found[0] == expected[0], shape
            assert not blocks or shape in JOINED or found[1] == expected[1], shape
