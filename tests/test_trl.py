"""Fine-tuning with TRL's trainers as whole jobs, on a CPU: what they train on is what we render."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

import bytepair
from bytepair.chat import ChatOptions

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("datasets")
transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")

TOK = bytepair.train(bytepair.sample.paths()[:2], 600)


def turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


TALKS = [
    [turn("system", "Be brief."), turn("user", f"{n} + 1?"), turn("assistant", f"{n + 1}. 🙂")]
    + [turn("user", "More?"), turn("assistant", "No.\n")] * (n % 3)
    for n in range(12)
]
PAIRS = [
    {
        "prompt": [turn("user", f"What is {n} + 1?")],
        "chosen": [turn("assistant", f"It is {n + 1}.")],
        "rejected": [turn("assistant", f"It may be {n + 2}.")],
    }
    for n in range(12)
]


def model(**fields: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(TOK), hidden_size=16, intermediate_size=32, num_attention_heads=2,
        **{"num_hidden_layers": 1, **fields},
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def options(folder: Path) -> dict[str, Any]:
    return {
        "output_dir": str(folder), "max_steps": 2, "per_device_train_batch_size": 3,
        "report_to": [], "save_strategy": "no", "use_cpu": True, "bf16": False,
        "disable_tqdm": True,
    }  # fmt: skip


#: TRL renames the fields, and not the roles.
FIELDS = {"role": "from", "content": "value"}
#: The same conversations in layouts that TRL reads, too.
LAYOUTS: dict[str, list[dict[str, Any]]] = {
    "messages": [{"messages": talk} for talk in TALKS],
    "sharegpt": [
        {"conversations": [{FIELDS[key]: value for key, value in t.items()} for t in talk]}
        for talk in TALKS
    ],
    "completion": [{"prompt": talk[:-1], "completion": talk[-1:]} for talk in TALKS],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_we_render_is_trained_on_as_what_trl_renders(layout: str, tmp_path: Path) -> None:
    rows, name = LAYOUTS[layout], cast(Any, layout)
    batch = TOK.render_batch(rows, options=ChatOptions(rows=name), ignore_index=-100)
    if layout == "sharegpt":
        rows = [trl.data_utils.maybe_convert_to_chatml(row) for row in rows]
    sources = [
        (datasets.Dataset(batch.to_arrow()), {}),
        (datasets.Dataset.from_list(rows), {"assistant_only_loss": layout != "completion"}),
    ]
    trained = []
    for data, choice in sources:
        trainer = trl.SFTTrainer(
            model(),
            trl.SFTConfig(**options(tmp_path), **choice),
            train_dataset=data,
            processing_class=bytepair.compat.to_transformers(TOK),
        )
        seen = [(row["input_ids"], row["labels"]) for row in trainer.train_dataset]
        trained.append((seen, trainer.train().training_loss))
    assert trained[0] == trained[1]
    assert len(trained[0][0]) == len(TALKS)


def packed_loss(folder: Path, data: Any, **choice: Any) -> float:
    """The loss of all rows in one step; the model's weights are large, so that it shows all."""
    collator = choice.pop("data_collator", None)
    how = options(folder) | {"max_steps": 1, "per_device_train_batch_size": 64} | choice
    trainer = trl.SFTTrainer(
        model(initializer_range=1.0, num_hidden_layers=2),
        trl.SFTConfig(**how),
        train_dataset=data,
        data_collator=collator,
        processing_class=bytepair.compat.to_transformers(TOK),
    )
    loss: float = trainer.train().training_loss
    return loss


@pytest.mark.filterwarnings("ignore")
def test_packed_rows_have_the_loss_of_trls_own_packing(tmp_path: Path) -> None:
    """Attention stays within a conversation; across the whole row, the loss is another."""
    rows = datasets.Dataset.from_list([{"messages": talk} for talk in TALKS])
    own = packed_loss(tmp_path, rows, packing=True, max_length=128, assistant_only_loss=True)
    batch = TOK.render_batch(TALKS, pack_to=128, ignore_index=-100)
    assert max(map(len, batch.lengths or [])) > 2
    table, names = datasets.Dataset(batch.to_arrow()), ["input_ids", "labels", "position_ids"]
    choice = {
        "data_collator": transformers.default_data_collator, "remove_unused_columns": False,
        "max_length": None,
    }  # fmt: skip
    ours = packed_loss(tmp_path, table.select_columns(names), **choice)
    assert ours == pytest.approx(own, abs=1e-6)
    whole = table.remove_columns("position_ids").map(lambda row: {"position_ids": list(range(128))})
    mixed = packed_loss(tmp_path, whole.select_columns(names), **choice)
    assert abs(mixed - own) > 1e-3


@pytest.mark.filterwarnings("ignore")
def test_preference_pairs_are_trained_on(tmp_path: Path) -> None:
    trainer = trl.DPOTrainer(
        model(),
        model(),
        trl.DPOConfig(**options(tmp_path)),
        train_dataset=datasets.Dataset.from_list(PAIRS),
        processing_class=bytepair.compat.to_transformers(TOK),
    )
    ours = bytepair.chat.render_preferences(TOK, PAIRS)
    for row, pair in zip(trainer.train_dataset, ours, strict=True):
        for name in ("prompt_ids", "chosen_ids", "rejected_ids"):
            assert row[name] == getattr(pair, name).tolist()
    assert trainer.train().training_loss > 0
