"""Objects of `tokenizers` and `transformers`, made of what the writer of files gives."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bytepair import _core
from bytepair.errors import LossError
from bytepair.files.outputs import write_files
from bytepair.formats.huggingface.folder import files, losses, text
from bytepair.properties.entries import GENERATION

if TYPE_CHECKING:
    import tokenizers
    import transformers


def of_tokenizers(tokenizer: _core.Tokenizer, *, special: bool) -> tokenizers.Tokenizer:
    """See `bytepair.compat.to_huggingface`."""
    from bytepair._internal.extras import tokenizers

    if lost := losses(tokenizer):
        raise LossError("huggingface", lost)
    exported: tokenizers.Tokenizer = tokenizers.tokenizers.Tokenizer.from_str(text(tokenizer))
    exported.encode_special_tokens = not special
    return exported


def of_transformers(tokenizer: _core.Tokenizer) -> transformers.PreTrainedTokenizerFast:
    """See `bytepair.compat.to_transformers`."""
    from bytepair._internal.extras import transformers

    if lost := losses(tokenizer):
        raise LossError("huggingface", lost)
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, files(tokenizer, folder))
        fast = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        stops = (folder / GENERATION).is_file()
        kind = transformers.GenerationConfig
        fast.generation_config = kind.from_pretrained(folder) if stops else kind()
    fast.name_or_path = tokenizer.notes.get("name", "")
    fast.init_kwargs["name_or_path"] = fast.name_or_path
    return fast
