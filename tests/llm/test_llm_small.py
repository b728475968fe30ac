import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3ForCausalLM

from davinci_kernel.errors import UserError
from davinci_kernel.llm import save_model, small_model, train_tokenizer

TOKENIZER = train_tokenizer(["    return x * 1.35;\n    y0 = 12;\n"] * 4, 400)
CODE = st.text(st.sampled_from("ab_09.\n\\n \t{}<|>\"'é→"))


@given(st.one_of(st.text(), CODE))
def test_any_text_decodes_to_itself(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def pieces(text):
    return [text[a:b] for _, (a, b) in TOKENIZER.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int a;\n\n  b\n", ["int a;\n\n", "  b\n"]),
        ("x * 1.35f;\n", ["x * ", "1.35", "f;\n"]),
        ("f(1024, -3)", ["f(", "1024", ", -", "3", ")"]),
        ("float32 y0 = v_2;\n", ["float32 y0 = v_2;\n"]),
        (r"a\nb 7\n", [r"a\n", "b ", "7", r"\n"]),
    ],
)
def test_lines_are_units_and_numbers_stand_apart(text, expected):
    assert pieces(text) == expected


def test_a_frequent_line_is_one_token():
    assert TOKENIZER.encode("    y0 = ") == [TOKENIZER.convert_tokens_to_ids("ĠĠĠĠy0Ġ=Ġ")]


def test_vocabulary_and_special_tokens(tokenizer):
    assert len(tokenizer) <= 400
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|endoftext|>")
    ids = tokenizer.encode("<|im_start|>a<tool_call></tool_call><|im_end|><|endoftext|>")
    assert len(ids) == 6
    assert tokenizer.decode(ids, skip_special_tokens=True) == "a<tool_call></tool_call>"
    with pytest.raises(UserError, match="vocab_size: 100"):
        train_tokenizer([""], 100)


def test_small_model_shape(tokenizer):
    """Embedding 400 x 64; per layer 4 x 64 x 64 attention, 3 x 64 x 96 MLP, 2 x 64 + 2 x 16 norms; last norm 64."""
    model = small_model(tokenizer, layers=2, width=64, heads=4, mlp=96)
    vocabulary = len(tokenizer)
    assert model.num_parameters() == vocabulary * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 96 + 2 * 64 + 2 * 16) + 64
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert (model.config.eos_token_id, model.config.pad_token_id) == (tokenizer.eos_token_id, tokenizer.pad_token_id)
    with pytest.raises(UserError, match=r"model\.width"):
        small_model(tokenizer, width=100, heads=3)


def test_the_seed_is_the_models_and_leaves_the_global_generator_alone(tokenizer):
    state = torch.random.get_rng_state()
    first, second, third = (small_model(tokenizer, layers=1, width=16, heads=2, mlp=16, seed=s) for s in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), state)
    weights = [m.model.layers[0].mlp.up_proj.weight for m in (first, second, third)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_saved_models_are_ordinary_hugging_face_directories(model, tokenizer, tmp_path):
    save_model(model, tokenizer, tmp_path / "m")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "m")
    assert isinstance(loaded, Qwen3ForCausalLM)
    ids = torch.tensor([[5, 9, 300]])
    with torch.no_grad():
        assert torch.equal(loaded.eval()(ids).logits, model.eval()(ids).logits)
    read = AutoTokenizer.from_pretrained(tmp_path / "m")
    text = "    return x * 1.35 + y0\n<|im_end|>\n é"
    assert read.encode(text) == tokenizer.encode(text)
    assert read.chat_template == tokenizer.chat_template
    assert read.decode(read.encode(text)) == text


def test_the_chat_templates_own_lines_are_single_tokens():
    ids = TOKENIZER.encode("<|im_start|>system\n<|im_start|>user\n<|im_start|>assistant\n")
    assert len(ids) == 6
