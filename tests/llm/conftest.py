import pytest
import torch

from davinci_kernel.llm import small_model, train_tokenizer

CORPUS = [
    "import torch\n    return x * 1.35 + y0\n" * 3,
    'for (long i = 0; i < n; i++) {\n    y[i] = x[i] * 2.5f;\n}\n{"name": "select_skills", "arguments": {}}\n' * 3,
    "system\nuser\nassistant\nMake this module faster.\n" * 3,
]


@pytest.fixture(scope="session")
def tokenizer():
    return train_tokenizer(CORPUS, 400)


@pytest.fixture(scope="session")
def model(tokenizer):
    """Two layers; weights scaled up, so that distributions are far from uniform and depend on the position."""
    model = small_model(tokenizer, layers=2, width=32, heads=2, mlp=64, max_positions=256, seed=1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(6)
    return model
