"""bytepair within vLLM and SGLang: their own registries, loaders and streams of text.

The engines need not run, only be there: their files, without what they depend on (`absent`). So
these tests say nothing of a server, of its processes, or of a GPU.
"""

from __future__ import annotations

import copy
import importlib
import importlib.metadata
import importlib.util
import pickle
import sys
import tomllib
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import bytepair
from absent import missing, stood_in_for
from bytepair.compat import huggingface
from bytepair.engines import plugins

pytestmark = pytest.mark.filterwarnings("ignore")

#: Imports of the engines that loading a tokenizer does not need.
VLLM_NEEDS = [
    "torch", "msgspec", "cachetools", "pydantic", "pydantic_core", "zmq", "cloudpickle", "psutil",
    "prometheus_client", "vllm.config", "vllm.lora", "vllm.multimodal", "vllm.platforms",
    "vllm.pooling_params", "vllm.renderers.base", "vllm.sampling_params",
    "vllm.transformers_utils.configs", "vllm.utils.torch_utils", "vllm.v1.metrics",
    "vllm.v1.serial_utils",
]  # fmt: skip
SGLANG_NEEDS = [
    "torch", "pydantic", "pydantic_core", "torchvision", "torchao", "zmq", "psutil", "triton",
    "requests", "fastapi", "starlette", "uvicorn", "uvloop", "orjson", "IPython", "PIL",
    "aiohttp", "msgspec", "pybase64", "sgl_kernel", "soundfile", "dill", "cloudpickle", "decord",
    "av", "einops", "prometheus_client", "setproctitle", "modelscope", "mistral_common",
    "sglang.srt.configs", "sglang.srt.connector", "sglang.srt.layers",
    "sglang.srt.model_executor", "sglang.srt.multimodal", "sglang.srt.platforms",
    "sglang.srt.server_args",
]  # fmt: skip

TEXTS = [
    "Hello world",
    "",
    " naïve 你好\n\n12345",
    "<|user_start|>Hi<|user_end|>",
    "def f(x):\n\t1",
]


@pytest.fixture(autouse=True)
def undone() -> Iterator[None]:
    yield
    huggingface.undo()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer with a chat template, as transformers finds it."""
    pytest.importorskip("transformers")
    folder: Path = tmp_path_factory.mktemp("model") / "small"
    bytepair.train(bytepair.sample.paths(), 2000, pattern="gpt2").export(folder, "huggingface")
    return folder


def place(name: str) -> Path:
    """The folder of a package, which is not imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"needs the package {name}")
    return Path(next(iter(spec.submodule_search_locations)))


def same(ours: Any, theirs: Any) -> None:
    """Two tokenizers of transformers, as engines use them."""
    assert type(ours._tokenizer) is huggingface.Tokenizer
    assert type(theirs._tokenizer) is not huggingface.Tokenizer
    assert dict(ours(TEXTS)) == dict(theirs(TEXTS))
    for text in TEXTS:
        ids = theirs.encode(text, add_special_tokens=False)
        assert ours.encode(text, add_special_tokens=False) == ids
        assert ours.encode(text, truncation=True, max_length=3) == (
            theirs.encode(text, truncation=True, max_length=3)
        )
        for skip in (False, True):
            assert ours.decode(ids, skip_special_tokens=skip) == (
                theirs.decode(ids, skip_special_tokens=skip)
            )
        assert ours.convert_ids_to_tokens(ids) == theirs.convert_ids_to_tokens(ids)
    assert ours.batch_decode([[72, 105], []]) == theirs.batch_decode([[72, 105], []])
    assert ours.get_vocab() == theirs.get_vocab()
    assert (ours.all_special_ids, len(ours), ours.vocab_size, ours.eos_token_id) == (
        (theirs.all_special_ids, len(theirs), theirs.vocab_size, theirs.eos_token_id)
    )
    talk = [{"role": "user", "content": "Hi"}]
    assert ours.apply_chat_template(talk, add_generation_prompt=True) == (
        theirs.apply_chat_template(talk, add_generation_prompt=True)
    )


# ---------------------------------------------------------------------------- stand-ins


def engine(folder: Path, name: str, needs: str) -> Path:
    """A package of an engine, which imports another one."""
    (folder / name / "part").mkdir(parents=True)
    (folder / name / "__init__.py").write_text(f"import {needs}\nwhole = True\n")
    (folder / name / "part" / "__init__.py").write_text(f"import {needs}\nneeded = {needs}\n")
    return folder / name


def test_what_is_installed_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "real_torch.py").write_text("version = 1\n")
    for name, needs, whole in (("lame", "no_torch", False), ("able", "real_torch", True)):
        package = engine(tmp_path, name, needs)
        absent = [f"{name}.part"] if whole else [needs, f"{name}.part"]
        assert missing(name, [needs, f"{name}.part"]) == absent
        with stood_in_for(package, [needs]):
            part: Any = importlib.import_module(f"{name}.part")
            assert part.needed is importlib.import_module(needs)
            assert hasattr(part.needed, "__file__") == whole
            assert hasattr(sys.modules[name], "whole") == whole
        assert (name in sys.modules, needs in sys.modules) == (whole, whole)
    for name in ("able", "able.part", "real_torch"):
        monkeypatch.delitem(sys.modules, name)


# ---------------------------------------------------------------------------- vLLM


def test_vllm_loads_the_mode(folder: Path) -> None:
    with stood_in_for(place("vllm"), VLLM_NEEDS):
        tokenizers: Any = importlib.import_module("vllm.tokenizers")
        theirs = tokenizers.get_tokenizer(str(folder), tokenizer_mode="hf")
        plugins.register_vllm()
        plugins.register_vllm()
        ours = tokenizers.get_tokenizer(str(folder), tokenizer_mode="bytepair")
        same(ours, theirs)
        assert (ours.max_token_id, ours.max_chars_per_token, ours.is_fast) == (
            (theirs.max_token_id, theirs.max_chars_per_token, True)
        )
        renderers: Any = importlib.import_module("vllm.renderers.registry")
        assert (
            renderers.RENDERER_REGISTRY.renderers["bytepair"]
            == (renderers.RENDERER_REGISTRY.renderers["hf"])
        )
        for copied in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours)):
            same(copied, theirs)
        expected = [theirs.encode(text) for text in TEXTS * 20]
        pool = tokenizers.maybe_make_thread_pool(ours, 3)
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(pool.encode, TEXTS * 20)) == expected


def streamed(detokenizer: Any, tokenizer: Any, ids: list[int], skip: bool, spaces: bool) -> str:
    """The text that vLLM streams for ids that come one by one after a prompt."""
    params = types.SimpleNamespace(
        skip_special_tokens=skip, spaces_between_special_tokens=spaces, stop=[], min_tokens=0,
        include_stop_str_in_output=False, stop_token_ids=[], detokenize=True,
    )  # fmt: skip
    request = types.SimpleNamespace(
        sampling_params=params, prompt_token_ids=ids[:2], request_id="r", prompt_embeds=None
    )
    stream = detokenizer.FastIncrementalDetokenizer(tokenizer, request)
    for id in ids[2:]:
        stream.update([id], False)
    text: str = stream.get_next_output_text(True, False)
    return text


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("spaces", [False, True])
def test_vllm_streams_the_same_text(folder: Path, skip: bool, spaces: bool) -> None:
    with stood_in_for(place("vllm"), VLLM_NEEDS):
        tokenizers: Any = importlib.import_module("vllm.tokenizers")
        detokenizer: Any = importlib.import_module("vllm.v1.engine.detokenizer")
        theirs = tokenizers.get_tokenizer(str(folder), tokenizer_mode="hf")
        rows = [[*theirs.encode(text), 0, 257, 1990, *theirs.encode("é 你")] for text in TEXTS]
        expected = [streamed(detokenizer, theirs, ids, skip, spaces) for ids in rows]
        plugins.register_vllm()
        ours = tokenizers.get_tokenizer(str(folder), tokenizer_mode="bytepair")
        assert [streamed(detokenizer, ours, ids, skip, spaces) for ids in rows] == expected


def registry(table: dict[str, tuple[str, str]]) -> Any:
    def register(mode: str, module: str, name: str) -> None:
        table[mode] = (module, name)

    return types.SimpleNamespace(register=register, tokenizers=table)


def test_the_mode_is_registered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without vLLM: registries of the same form."""
    modes: dict[str, tuple[str, str]] = {}
    renderers: dict[str, tuple[str, str]] = {}
    registries: dict[str, dict[str, Any]] = {
        "vllm": {},
        "vllm.tokenizers": {"TokenizerRegistry": registry(modes)},
        "vllm.renderers": {},
        "vllm.renderers.registry": {"RENDERER_REGISTRY": registry(renderers)},
    }
    for name, members in registries.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    plugins.register_vllm()
    assert modes == {"bytepair": ("bytepair.engines.plugins", "VllmTokenizer")}
    assert renderers == {"bytepair": ("vllm.renderers.hf", "HfRenderer")}


def test_a_vllm_without_modes_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in (None, types.ModuleType("vllm.tokenizers")):
        monkeypatch.setitem(sys.modules, "vllm", types.ModuleType("vllm"))
        monkeypatch.setitem(sys.modules, "vllm.tokenizers", module)
        plugins.register_vllm()
        assert "no tokenizer mode 'bytepair'" in caplog.text
        caplog.clear()


# ---------------------------------------------------------------------------- SGLang


def test_sglang_loads_tokenizers_on_bytepair(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stood_in_for(place("sglang"), SGLANG_NEEDS):
        loader: Any = importlib.import_module("sglang.srt.utils.hf_transformers.tokenizer")
        theirs = loader.get_tokenizer(str(folder))
        plugins.register_sglang()
        assert type(loader.get_tokenizer(str(folder))._tokenizer) is type(theirs._tokenizer)
        theirs_of: Any = importlib.import_module("sglang.srt.plugins")
        entry = importlib.metadata.EntryPoint(
            "bytepair", "bytepair.engines.plugins:register_sglang", "sglang.srt.plugins"
        )
        monkeypatch.setattr(
            theirs_of, "entry_points", lambda group: [entry] if group == entry.group else []
        )
        monkeypatch.setenv("BYTEPAIR_TRANSFORMERS", "1")
        theirs_of.load_plugins()
        same(loader.get_tokenizer(str(folder)), theirs)


# ---------------------------------------------------------------------------- both


@pytest.mark.parametrize(
    "register", [plugins.register_vllm, plugins.register_sglang], ids=["vllm", "sglang"]
)
def test_the_environment_has_all_tokenizers_run_on_bytepair(
    register: Callable[[], None], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = pytest.importorskip("transformers")
    monkeypatch.setitem(sys.modules, "vllm", None)
    for value, expected in (("0", False), ("1", True)):
        monkeypatch.setenv("BYTEPAIR_TRANSFORMERS", value)
        register()
        loaded = transformers.AutoTokenizer.from_pretrained(folder)
        assert isinstance(loaded._tokenizer, huggingface.Tokenizer) == expected


def test_the_package_names_its_plugins() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for group, register in (
        ("vllm.general_plugins", plugins.register_vllm),
        ("sglang.srt.plugins", plugins.register_sglang),
    ):
        ((name, value),) = project["entry-points"][group].items()
        entry = importlib.metadata.EntryPoint(name, value, group)
        assert (name, entry.load()) == ("bytepair", register)
